// SPDX-License-Identifier: GPL-2.0-or-later
//! The fair class: whose turn it is, for how long, and what sleepers and movers keep.

use super::*;
use crate::class::table::Yield;

in_every_era! {
    empty_queue_picks_nobody
    lone_task_runs_and_is_shown
    task_keeps_the_cpu_within_its_slice
    long_sleeper_runs_soon_and_then_shares
    sleeper_gets_no_more_than_its_share_for_a_long_sleep
    ended_task_leaves_nothing_queued
    lone_task_keeps_the_cpu_when_it_yields
    yield_between_two_is_consistent
    moved_task_does_not_starve_nor_hog
    idle_time_is_not_busy_time
    always_running_task_has_full_utilisation
    expected_utilisation_outlasts_a_sleep
    second_task_crowds_the_queue
    arrival_on_an_idle_cpu_asks_for_a_switch
    lower_nice_preempts_sooner_or_equal
    waiting_tasks_are_listed_once
    coldest_task_is_found_in_order_of_turns
    detached_task_runs_elsewhere
}

fn empty_queue_picks_nobody(era: Era) {
    let mut q = Queues::new(era, &[FAIR]);
    assert_eq!(q.schedule(0), None);
    assert_eq!(q.rq.nr(0), 0);
}

fn lone_task_runs_and_is_shown(era: Era) {
    let mut q = Queues::new(era, &[FAIR]);
    q.fork(3, 0);
    assert_eq!((q.rq.nr(3), q.rq.current(3)), (1, None));
    assert_eq!(q.schedule(3), Some(0));
    assert_eq!(q.rq.current(3), Some(TaskId(0)));
    let shown = q.rq.shown(3);
    assert_eq!((shown.nr_running, shown.fair.nr_delayed), (1, 0));
    assert_eq!(q.rq.nr(2), 0);
    q.check();
}

fn task_keeps_the_cpu_within_its_slice(era: Era) {
    let mut q = Queues::new(era, &[FAIR; 2]);
    q.fork(0, 0);
    q.schedule(0);
    q.fork(0, 1);
    q.rq.clear_resched(0);
    q.pass(MS / 10);
    q.rq.tick(0, TaskId(0));
    assert!(!q.rq.need_resched(0));
}

fn long_sleeper_runs_soon_and_then_shares(era: Era) {
    let mut q = Queues::new(era, &[FAIR; 2]);
    q.fork(0, 0);
    q.fork(0, 1);
    let first = q.schedule(0).expect("a task");
    q.pass(MS);
    q.sleep(0);
    q.ticks(0, 500);
    q.wake(first);
    q.ticks(0, 10);
    assert!(q.ran_ms(first) >= 5, "ran {} ms", q.ran_ms(first));
}

fn sleeper_gets_no_more_than_its_share_for_a_long_sleep(era: Era) {
    let mut q = Queues::new(era, &[FAIR; 2]);
    q.fork(0, 0);
    q.fork(0, 1);
    let first = q.schedule(0).expect("a task");
    let other = 1 - first;
    q.pass(MS);
    q.sleep(0);
    q.ticks(0, 2500);
    q.wake(first);
    let before = q.ran_ms(other);
    q.ticks(0, 250);
    // Half of a second, less a latency's credit.
    let got = q.ran_ms(other) - before;
    assert!(got >= 450, "the other got {got} ms of 1000");
}

fn ended_task_leaves_nothing_queued(era: Era) {
    let mut q = Queues::new(era, &[FAIR]);
    q.fork(0, 0);
    q.schedule(0);
    q.ticks(0, 5);
    assert_eq!(q.end(0), None);
    assert_eq!((q.rq.nr(0), q.rq.queued_weight(0)), (0, 0));
    assert_eq!(q.rq.task(TaskId(0)).life(), Life::Dead);
    q.check();
}

fn lone_task_keeps_the_cpu_when_it_yields(era: Era) {
    let mut q = Queues::new(era, &[FAIR]);
    q.fork(0, 0);
    q.schedule(0);
    q.pass(MS);
    assert!(matches!(q.rq.yields(0, TaskId(0)), Yield::Keeps));
    assert_eq!(q.rq.current(0), Some(TaskId(0)));
}

fn yield_between_two_is_consistent(era: Era) {
    let mut q = Queues::new(era, &[FAIR; 2]);
    q.fork(0, 0);
    q.fork(0, 1);
    let first = q.schedule(0).expect("a task");
    q.pass(MS);
    match q.rq.yields(0, TaskId(first)) {
        Yield::To(next) => {
            assert_eq!(next.0, 1 - first);
            q.rq.set_next(0, next);
        }
        Yield::Again => assert_eq!(q.rq.current(0), Some(TaskId(first))),
        other => panic!("{other:?}"),
    }
    q.check();
}

fn moved_task_does_not_starve_nor_hog(era: Era) {
    let mut q = Queues::new(era, &[FAIR; 3]);
    q.fork(0, 0);
    q.schedule(0);
    q.ticks(0, 2500);
    q.fork(1, 1);
    q.schedule(1);
    q.fork(1, 2);
    // Task 0 has run for ten seconds on its CPU, and comes to a queue that is new.
    q.sleep(0);
    if q.rq.is_delayed(TaskId(0)) {
        return;
    }
    q.wake_on(1, 0);
    let ran = [0, 1, 2].map(|task| q.ran_ms(task));
    q.ticks(1, 750);
    for task in 0..3u32 {
        let got = q.ran_ms(task) - ran[task as usize];
        assert!((900..=1100).contains(&got), "task {task} got {got} ms of 3000");
    }
}

fn idle_time_is_not_busy_time(era: Era) {
    let mut q = Queues::new(era, &[FAIR]);
    q.rq.take_busy(0);
    q.pass(10 * MS);
    q.fork(0, 0);
    q.schedule(0);
    q.pass(3 * MS);
    assert_eq!(q.sleep(0), None);
    q.pass(20 * MS);
    assert_eq!(q.rq.busy_ns(0), 3 * MS);
    assert_eq!((q.rq.take_busy(0), q.rq.busy_ns(0)), (3 * MS, 0));
}

fn always_running_task_has_full_utilisation(era: Era) {
    let mut q = Queues::new(era, &[FAIR]);
    q.fork(0, 0);
    q.schedule(0);
    q.ticks(0, 250);
    let util = q.rq.task_average(TaskId(0)).util;
    assert!(util >= 1010, "{util}");
    assert!(q.rq.is_full(0));
}

fn expected_utilisation_outlasts_a_sleep(era: Era) {
    let mut q = Queues::new(era, &[FAIR; 2]);
    q.fork(0, 0);
    q.fork(0, 1);
    q.schedule(0);
    q.ticks(0, 250);
    let sleeper = q.rq.current(0).expect("a task");
    q.sleep(0);
    q.ticks(0, 250);
    q.rq.migrate(sleeper);
    let average = q.rq.task_average(sleeper).util;
    assert!(q.rq.expected_util(sleeper) > 300 && average < 60, "{average}");
}

fn second_task_crowds_the_queue(era: Era) {
    let mut q = Queues::new(era, &[FAIR; 3]);
    let crowds = |effects: Vec<Effect>| {
        let is = |e: &&Effect| matches!(e, Effect::Crowded(_));
        effects.iter().filter(is).count()
    };
    q.fork(0, 0);
    assert_eq!(crowds(q.effects()), 0);
    q.fork(0, 1);
    assert_eq!(crowds(q.effects()), 1);
    q.fork(0, 2);
    assert_eq!(crowds(q.effects()), 0);
}

fn arrival_on_an_idle_cpu_asks_for_a_switch(era: Era) {
    let mut q = Queues::new(era, &[FAIR]);
    q.fork(0, 0);
    let arrival = q.rq.arrives(0, TaskId(0));
    assert!(!arrival.preempts && !arrival.pushes);
    assert!(q.rq.need_resched(0));
}

fn lower_nice_preempts_sooner_or_equal(era: Era) {
    // How long the hog runs until a sleeper that wakes up preempts it, in ticks.
    let after = |level: i8| {
        (1..100u64).find(|&ms| {
            let mut q = Queues::new(era, &[FAIR, nice(level)]);
            q.fork(0, 1);
            q.schedule(0);
            q.pass(MS / 10);
            q.sleep(0);
            q.fork(0, 0);
            q.schedule(0);
            q.pass(ms * MS);
            q.wake(1);
            q.rq.arrives(0, TaskId(1)).preempts
        })
    };
    let (high, low) = (after(-10).unwrap_or(100), after(10).unwrap_or(100));
    assert!(high <= low, "after {high} and {low} ms");
}

fn waiting_tasks_are_listed_once(era: Era) {
    let mut q = Queues::new(era, &[FAIR; 4]);
    (0..4).for_each(|task| q.fork(0, task));
    let runs = q.schedule(0);
    let mut seen = Vec::new();
    assert!(q.rq.each_waiting(0, &mut |task| {
        seen.push(task.0);
        true
    }));
    seen.sort_unstable();
    let expected: Vec<u32> = (0..4).filter(|&task| Some(task) != runs).collect();
    assert_eq!(seen, expected);
    assert!(!q.rq.each_waiting(0, &mut |_| false));
}

fn coldest_task_is_found_in_order_of_turns(era: Era) {
    let mut q = Queues::new(era, &[FAIR; 4]);
    (0..4).for_each(|task| q.fork(0, task));
    let runs = q.schedule(0).expect("a task");
    let mut after = q.rq.first_turn();
    let mut found = Vec::new();
    while let Some((turn, task)) = q.rq.coldest(0, after) {
        found.push(task.0);
        after = turn;
    }
    let mut expected: Vec<u32> = (0..4).filter(|&task| task != runs).collect();
    if era == Era::V3_4 {
        expected.reverse();
    }
    assert_eq!(found, expected);
}

fn detached_task_runs_elsewhere(era: Era) {
    let mut q = Queues::new(era, &[FAIR; 2]);
    q.fork(0, 0);
    q.fork(0, 1);
    let runs = q.schedule(0).expect("a task");
    q.pass(2 * MS);
    let waits = TaskId(1 - runs);
    q.rq.update_current(0);
    q.rq.detach_waiting(waits, 0);
    assert_eq!((q.rq.nr(0), q.rq.task(waits).life()), (1, Life::Waking));
    q.rq.enqueue(5, waits, true);
    assert_eq!((q.rq.nr(5), q.schedule(5)), (1, Some(waits.0)));
    q.check();
}

/// EEVDF alone leaves a sleeper that owes time on its queue.
fn owing_sleeper(era: Era) -> Option<(Queues, TaskId)> {
    let mut q = Queues::new(era, &[FAIR; 2]);
    q.fork(0, 0);
    q.fork(0, 1);
    let first = TaskId(q.schedule(0).expect("a task"));
    q.pass(5 * MS);
    q.effects();
    let departure = q.rq.leave(0, first, Life::Asleep);
    (!departure.dequeued).then_some((q, first))
}

in_every_era! { sleeper_that_owes_time_stays_in_eevdf_only }

fn sleeper_that_owes_time_stays_in_eevdf_only(era: Era) {
    let kept = owing_sleeper(era);
    assert_eq!(kept.is_some(), is_eevdf(era));
    if let Some((q, task)) = kept {
        assert!(q.rq.is_delayed(task) && q.rq.on_queue(task));
        assert_eq!((q.rq.nr(0), q.rq.nr_delayed(0), q.rq.nr_runnable_fair(0)), (2, 1, 1));
    }
}

#[test]
fn delayed_sleeper_leaves_when_its_turn_comes() {
    for era in [Era::V6_15, Era::V7_2] {
        let (mut q, task) = owing_sleeper(era).expect("EEVDF");
        q.schedule(0);
        let mut left = Vec::new();
        for _ in 0..20 {
            q.ticks(0, 1);
            left.extend(q.effects());
        }
        assert!(left.iter().any(|e| matches!(e, Effect::Paid(t, 0) if *t == task)), "{left:?}");
        assert_eq!((q.rq.nr(0), q.rq.is_delayed(task)), (1, false));
        q.check();
    }
}

#[test]
fn delayed_sleeper_that_wakes_stays_where_it_is() {
    for era in [Era::V6_15, Era::V7_2] {
        let (mut q, task) = owing_sleeper(era).expect("EEVDF");
        q.schedule(0);
        q.wake(task.0);
        assert_eq!((q.rq.nr(0), q.rq.nr_delayed(0)), (2, 0));
        assert_eq!(q.rq.task(task).life(), Life::Queued);
        q.check();
    }
}

#[test]
fn lag_is_a_debt_after_running_and_a_credit_while_waiting() {
    for era in [Era::V6_15, Era::V7_2] {
        let mut q = Queues::new(era, &[FAIR; 2]);
        q.fork(0, 0);
        q.fork(0, 1);
        let runs = TaskId(q.schedule(0).expect("a task"));
        q.pass(2 * MS);
        q.rq.update_current(0);
        let (debt, credit) = (q.rq.lag_now(runs), q.rq.lag_now(TaskId(1 - runs.0)));
        assert!(debt < 0 && credit > 0, "{debt} and {credit}");
        assert!((debt + credit).abs() <= 1, "{debt} and {credit}");
    }
}

#[test]
fn util_est_falls_once_in_a_period_of_pelt() {
    const NS: u64 = 1024 * 1024;
    // Runs and sleeps for as long each, and returns the changes of the estimate.
    let changes = |half_ns: u64| {
        let mut q = Queues::new(Era::V6_15, &[FAIR]);
        q.fork(0, 0);
        q.schedule(0);
        q.ticks(0, 50);
        q.sleep(0);
        // The utilisation falls, and with it what the estimate tends to.
        q.pass(20 * NS);
        let mut seen = Vec::new();
        for _ in 0..17 {
            q.wake(0);
            // The estimate exceeds the average.
            seen.push(q.rq.shown(0).fair.util);
            q.schedule(0);
            q.pass(half_ns);
            q.sleep(0);
            q.pass(half_ns);
        }
        seen.windows(2).filter(|pair| pair[0] != pair[1]).count()
    };
    assert_eq!(changes(NS), 16);
    // Eight cycles make a period; one more has ended in the sleep before the first.
    assert_eq!(changes(NS / 16), 3);
}

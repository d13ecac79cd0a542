// SPDX-License-Identifier: GPL-2.0-or-later
//! The real-time class: priorities, slices, the limit, pushing and pulling.

use perch_policy::Wake;

use super::*;
use crate::class::rt::Push;
use crate::class::table::{Choice, Yield};
use crate::hardware::{Field, Symbol};
use crate::observe::RtStep;

in_every_era! {
    real_time_comes_before_fair
    priorities_come_first_and_equals_in_order
    higher_priority_preempts
    pinned_equal_preempts_a_task_that_can_move
    preempted_task_goes_on_first_among_equals
    yielding_task_goes_behind_its_equals
    waiting_task_is_pushed_to_an_idle_cpu
    pinned_task_is_not_pushed
    push_stops_where_all_run_higher
    highest_waiting_task_is_pulled
    task_stays_on_a_cpu_of_lower_priority
    wakee_leaves_a_cpu_of_higher_priority
    exec_stays
    lines_are_touched_in_order
    no_lines_are_noted_without_figures
    last_task_to_leave_pulls
}

fn pinned(priority: u8, cpu: u32) -> NewTask {
    NewTask { affinity: MaskId(cpu + 1), ..fifo(priority) }
}

fn real_time_comes_before_fair(era: Era) {
    let mut q = Queues::new(era, &[FAIR, fifo(1)]);
    q.fork(0, 0);
    q.fork(0, 1);
    assert_eq!((q.rq.nr(0), q.rq.nr_rt(0)), (2, 1));
    assert_eq!(q.schedule(0), Some(1));
    assert!(q.rq.pushes(0) && q.rq.fair_current(0).is_none());
    assert_eq!(q.sleep(0), Some(0));
    assert!(!q.rq.pushes(0));
    q.check();
}

fn priorities_come_first_and_equals_in_order(era: Era) {
    let mut q = Queues::new(era, &[fifo(10), fifo(50), fifo(10), fifo(99)]);
    (0..4).for_each(|task| q.fork(0, task));
    let order: Vec<u32> = std::iter::successors(q.schedule(0), |_| q.sleep(0)).collect();
    assert_eq!(order, [3, 1, 0, 2]);
    q.check();
}

fn higher_priority_preempts(era: Era) {
    let mut q = Queues::new(era, &[fifo(10), fifo(20), fifo(5)]);
    q.fork(0, 0);
    q.schedule(0);
    q.fork(0, 2);
    assert!(!q.rq.arrives(0, TaskId(2)).preempts && !q.rq.need_resched(0));
    q.fork(0, 1);
    assert!(q.rq.arrives(0, TaskId(1)).preempts && q.rq.need_resched(0));
    assert_eq!(q.preempt(0), Some(1));
}

fn pinned_equal_preempts_a_task_that_can_move(era: Era) {
    let mut q = Queues::new(era, &[fifo(10), pinned(10, 0), fifo(10)]);
    q.fork(0, 0);
    q.schedule(0);
    // An equal that can move itself preempts nobody.
    q.fork(0, 2);
    assert!(!q.rq.arrives(0, TaskId(2)).preempts);
    q.fork(0, 1);
    assert!(q.rq.arrives(0, TaskId(1)).preempts);
    assert_eq!(q.preempt(0), Some(1));
}

fn preempted_task_goes_on_first_among_equals(era: Era) {
    let mut q = Queues::new(era, &[fifo(10), fifo(10), fifo(20)]);
    q.fork(0, 0);
    q.fork(0, 1);
    q.schedule(0);
    q.fork(0, 2);
    assert_eq!(q.preempt(0), Some(2));
    assert_eq!(q.sleep(0), Some(0));
}

fn yielding_task_goes_behind_its_equals(era: Era) {
    let mut q = Queues::new(era, &[fifo(10), fifo(10), fifo(9)]);
    (0..3).for_each(|task| q.fork(0, task));
    q.schedule(0);
    assert!(matches!(q.rq.yields(0, TaskId(0)), Yield::GivesWay));
    assert_eq!(q.preempt(0), Some(1));
    q.sleep(0);
    // Alone at its priority it keeps the CPU.
    assert!(matches!(q.rq.yields(0, TaskId(0)), Yield::Keeps));
}

fn waiting_task_is_pushed_to_an_idle_cpu(era: Era) {
    let mut q = Queues::new(era, &[fifo(10), fifo(5)]);
    q.fork(0, 0);
    q.schedule(0);
    q.fork(0, 1);
    assert!(q.effects().iter().any(|e| matches!(e, Effect::Overloaded(0))));
    assert!(q.rq.arrives(0, TaskId(1)).pushes);
    let Push::To(task, to) = q.rq.next_push(0, 0) else {
        panic!("nothing to push");
    };
    assert!(task == TaskId(1) && to != 0);
    q.rq.detach_rt(task);
    q.rq.enqueue(to, task, true);
    assert_eq!(q.schedule(to), Some(1));
    assert!(matches!(q.rq.next_push(0, 0), Push::Stops));
    q.check();
}

fn pinned_task_is_not_pushed(era: Era) {
    let mut q = Queues::new(era, &[fifo(10), pinned(5, 0)]);
    q.fork(0, 0);
    q.schedule(0);
    q.fork(0, 1);
    assert!(!q.rq.arrives(0, TaskId(1)).pushes);
    assert!(matches!(q.rq.next_push(0, 0), Push::Stops));
}

fn push_stops_where_all_run_higher(era: Era) {
    let mut tasks = vec![fifo(50); 24];
    tasks.push(fifo(40));
    let mut q = Queues::new(era, &tasks);
    for cpu in 0..24 {
        q.fork(cpu, cpu as u32);
        q.schedule(cpu);
    }
    q.fork(7, 24);
    assert!(matches!(q.rq.next_push(7, 7), Push::Stops));
    q.check();
}

fn highest_waiting_task_is_pulled(era: Era) {
    let mut q = Queues::new(era, &[fifo(90), fifo(30), fifo(90), fifo(60), fifo(10)]);
    // Two CPUs have a task that waits behind a higher one; CPU 9 runs the lowest.
    for (cpu, task) in [(1, 0), (2, 2), (9, 4)] {
        q.fork(cpu, task);
        q.schedule(cpu);
    }
    q.fork(1, 1);
    q.fork(2, 3);
    assert!(q.rq.others_overloaded(9));
    assert_eq!(q.rq.next_pull(9, 0), Some((TaskId(1), 1)));
    assert_eq!(q.rq.next_pull(9, 2), Some((TaskId(3), 2)));
    assert_eq!(q.rq.next_pull(9, 3), None);
}

fn choose(q: &mut Queues, task: u32, prev: usize, exec: bool) -> Choice {
    let wake = Wake { prev_cpu: prev, exec, ..Wake::default() };
    q.rq.choose(TaskId(task), &wake, 0)
}

fn task_stays_on_a_cpu_of_lower_priority(era: Era) {
    let mut q = Queues::new(era, &[fifo(10), FAIR]);
    q.fork(6, 1);
    q.schedule(6);
    let Choice::Class(cpu, step) = choose(&mut q, 0, 6, false) else {
        panic!("the class chooses");
    };
    assert_eq!((cpu, step), (6, RtStep::Stay));
    assert!(matches!(choose(&mut q, 1, 6, false), Choice::Policy));
}

fn wakee_leaves_a_cpu_of_higher_priority(era: Era) {
    let mut q = Queues::new(era, &[fifo(10), fifo(20)]);
    q.fork(6, 1);
    q.schedule(6);
    let Choice::Class(cpu, step) = choose(&mut q, 0, 6, false) else {
        panic!("the class chooses");
    };
    assert!(cpu != 6 && step == RtStep::Lowest, "cpu {cpu} by {step:?}");
}

fn exec_stays(era: Era) {
    let mut q = Queues::new(era, &[fifo(10)]);
    assert!(matches!(choose(&mut q, 0, 6, true), Choice::Stays));
}

fn lines_are_touched_in_order(era: Era) {
    let mut q = Queues::with(era, &[fifo(10), fifo(5)], &[], true);
    q.fork(0, 0);
    let touched = |q: &mut Queues| -> Vec<(Symbol, Field)> {
        let lines = q.effects().into_iter().filter_map(|effect| match effect {
            Effect::Line(symbol, field, _) => Some((symbol, field)),
            _ => None,
        });
        lines.collect()
    };
    // The CPU's level of priority changes from 0 to 10.
    let set = Symbol::CpupriSet;
    let expected = [
        (set, Field::CpupriMask(10)),
        (set, Field::CpupriCount(10)),
        (set, Field::CpupriMask(0)),
        (set, Field::CpupriCount(0)),
    ];
    assert_eq!(touched(&mut q)[..4], expected);
    q.schedule(0);
    touched(&mut q);
    q.fork(0, 1);
    let pushable = Symbol::EnqueuePushableTask;
    assert_eq!(
        touched(&mut q),
        [
            (pushable, Field::RtoMaskPointer),
            (pushable, Field::RtoMask),
            (pushable, Field::RtoCount(0)),
        ]
    );
}

fn no_lines_are_noted_without_figures(era: Era) {
    let mut q = Queues::new(era, &[fifo(10), fifo(5)]);
    q.fork(0, 0);
    q.fork(0, 1);
    let any = q.effects().iter().any(|e| matches!(e, Effect::Line(..)));
    assert!(!any);
}

fn last_task_to_leave_pulls(era: Era) {
    let mut q = Queues::new(era, &[fifo(10), fifo(10), fifo(5)]);
    (0..3).for_each(|task| q.fork(0, task));
    q.schedule(0);
    let leave = |q: &mut Queues| {
        let current = q.rq.current(0).expect("a task");
        let departure = q.rq.leave(0, current, Life::Asleep);
        q.schedule(0);
        departure.pulls
    };
    // The next task has the same priority, then a lower one, then there is none.
    assert_eq!([leave(&mut q), leave(&mut q), leave(&mut q)], [false, true, true]);
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! sysbench's threads test: the score of a thread alone, mutexes, yields.

use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::Era;
use perch_sim::workload::{Op, Workload};
use perch_sim::{Dist, Outcome, Scenario};
use proptest::prelude::*;
use rand_core::{RngCore, SeedableRng};

use crate::common::{
    ERAS, MS, config, decisions, machine, of_tasks, scenario, task, traced, workload,
};

/// A run of `sysbench:…` for `ms` milliseconds.
fn run(machine: &Arc<Machine>, era: Era, keys: &str, ms: u64) -> Outcome {
    let load = workload(machine, &format!("sysbench:{keys}"));
    scenario(machine, era, load, [20, ms]).run().expect("a scenario that runs")
}

/// Events that a run counted, a second.
fn events_per_s(outcome: &Outcome) -> f64 {
    let m = &outcome.metrics;
    m.counted as f64 * 1e9 / m.simulated_ns as f64
}

const COSTS: &str = "yields=100,yield_ns=800,loop_ns=50,event_ns=500";
/// The time that an event of [`COSTS`] takes, nanoseconds.
const EVENT_NS: f64 = 100.0 * 850.0 + 500.0;

#[test]
fn one_thread_does_what_its_costs_say() {
    let kunpeng = machine("kunpeng920");
    for era in ERAS {
        let outcome = run(&kunpeng, era, &format!("threads=1,{COSTS}"), 200);
        let expected = 1e9 / EVENT_NS;
        let got = events_per_s(&outcome);
        assert!((got / expected - 1.0).abs() < 0.002, "{era}: {got} of {expected}");
        assert_eq!(outcome.metrics.wakeups, 0, "{era}: it never sleeps");
        // The score is a rate, whatever the measured time.
        assert_eq!(outcome.scores[0].unit, "events/5s");
        assert!((outcome.scores[0].value / got - 5.0).abs() < 1e-9);
    }
}

#[test]
fn a_slower_cpu_does_less_by_its_capacity() {
    let mut juno = (*machine("juno")).clone();
    juno.hardware.stall_pct = 0;
    let juno = Arc::new(juno);
    for era in ERAS {
        let little = run(&juno, era, &format!("threads=1,where=cpu0,{COSTS}"), 500);
        let big = run(&juno, era, &format!("threads=1,where=cpu1,{COSTS}"), 500);
        let share = events_per_s(&little) / events_per_s(&big);
        assert!((share - 446.0 / 1024.0).abs() < 0.003, "{era}: {share}");
    }
}

/// As many mutexes as threads: numbers follow one another, and no two events under way have the
/// same remainder while all threads are equally fast.
#[test]
fn threads_on_cpus_of_their_own_do_not_disturb_each_other() {
    let kunpeng = machine("kunpeng920");
    for era in ERAS {
        // In 3.4 all threads begin on one CPU: each sleeps when the next one is forked, and a sleeper
        // weighs nothing there. The balancer needs a while to spread them.
        let warmup_ms = if era == Era::V3_4 { 500 } else { 20 };
        let run = |keys: &str| {
            let load = workload(&kunpeng, &format!("sysbench:{keys}"));
            let scenario = scenario(&kunpeng, era, load, [warmup_ms, 200]);
            scenario.run().expect("a scenario that runs")
        };
        let one = events_per_s(&run(&format!("threads=1,{COSTS}")));
        for n in [2, 8, 16] {
            let keys = format!("threads={n},locks=64,{COSTS}");
            let all = events_per_s(&run(&keys));
            let share = all / (f64::from(n) * one);
            assert!((share - 1.0).abs() < 0.01, "{era}, {n} threads: {share}");
        }
    }
}

/// All threads want the one mutex: no two hold it at once, and one of them always makes progress.
#[test]
fn one_mutex_lets_one_thread_go_on() {
    let kunpeng = machine("kunpeng920");
    for era in ERAS {
        let one = events_per_s(&run(&kunpeng, era, &format!("threads=1,{COSTS}"), 100));
        let keys = format!("threads=8,locks=1,wake_ns=300,wait_ns=500,{COSTS}");
        let outcome = run(&kunpeng, era, &keys, 100);
        let all = events_per_s(&outcome);
        assert!(all < one, "{era}: {all} with one mutex, {one} alone");
        // The holder pays for waking in vain: a call and a wake-up a round.
        assert!(all > one / 8.0, "{era}: {all} with one mutex, {one} alone");
        // Woken in vain, again and again: many more wake-ups than events.
        let m = &outcome.metrics;
        assert!(m.wakeups > 10 * m.counted, "{era}: {m:?}");
    }
}

/// The sleeper that came first is woken first, and marks the mutex when it takes it, so that its
/// unlocking wakes the next one.
#[test]
fn sleepers_on_a_mutex_are_woken_in_turn() {
    let kunpeng = machine("kunpeng920");
    let (lock, unlock) = (
        Op::Lock { first: 0, wait: Dist::Const(500) },
        Op::Unlock { first: 0, wake: Dist::Const(300) },
    );
    let program = |before, held| {
        let (before, held) = (Op::Run(Dist::Const(before)), Op::Run(Dist::Const(held)));
        vec![before, lock, held, unlock, Op::Count, Op::Exit]
    };
    for era in ERAS {
        let tasks = [(1000, MS), (300_000, 9000), (200_000, 9000), (400_000, 9000)];
        let tasks = tasks.into_iter().enumerate();
        let tasks =
            tasks.map(|(i, (before, held))| task(&kunpeng, program(before, held), i..i + 1));
        let load = Workload { mutexes: 1, ..of_tasks(&kunpeng, "a queue", tasks.collect(), 0) };
        let (trace, outcome) = traced(&scenario(&kunpeng, era, load, [0, 5]));
        let woken = decisions(&trace).into_iter().filter(|d| d.now_ns > MS);
        assert_eq!(woken.map(|d| d.task).collect::<Vec<_>>(), [2, 1, 3], "{era}");
        assert_eq!(outcome.metrics.counted, 4, "{era}");
    }
}

/// Two tasks that only yield to each other on one CPU: each yield is a switch.
#[test]
fn who_yields_lets_the_other_run() {
    let kunpeng = machine("kunpeng920");
    let yields = vec![Op::Run(Dist::Const(1000)), Op::Yield, Op::Count, Op::Jump(0)];
    for era in ERAS {
        let of = |n| (0..n).map(|_| task(&kunpeng, yields.clone(), 0..1)).collect();
        let run = |n| {
            let load = of_tasks(&kunpeng, "yields", of(n), 0);
            let outcome = scenario(&kunpeng, era, load, [20, 100]).run();
            outcome.expect("a scenario that runs").metrics
        };
        let alone = run(1);
        assert!(alone.counted.abs_diff(100_000) < 10, "{era}: {alone:?}");
        assert!(alone.context_switches <= 1, "{era}: {alone:?}");
        let two = run(2);
        // All but the odd yield just after a tick has switched anyway.
        let switches = two.context_switches as f64 / two.counted as f64;
        assert!((0.99..1.01).contains(&switches), "{era}: {switches}");
        // Each switch costs what the machine says.
        assert!(two.counted < alone.counted * 9 / 10, "{era}: {two:?}");
    }
}

/// CFS: a sleeper that is far behind may not be kept waiting by a yield of its own.
#[test]
fn who_is_far_behind_keeps_the_cpu_in_spite_of_its_yield() {
    let kunpeng = machine("kunpeng920");
    // Sleeps for a long time, then yields all the time for less than its credit is worth.
    let mut sleeper = vec![Op::Sleep(Dist::Const(60 * MS))];
    sleeper.extend([Op::Run(Dist::Const(50_000)), Op::Yield].repeat(20));
    sleeper.push(Op::Jump(0));
    let hog = vec![Op::Run(Dist::Const(100_000)), Op::Jump(0)];
    let tasks = [sleeper, hog].map(|p| task(&kunpeng, p, 0..1));
    let load = of_tasks(&kunpeng, "far behind", tasks.into(), 0);
    let run = scenario(&kunpeng, Era::V6_5, load, [0, 2000]).run();
    let m = run.expect("a scenario that runs").metrics;
    // 32 bursts of a millisecond. The credit of 12 ms covers a burst but for the wake-up
    // granularity of 4 ms: in each burst the sleeper comes, goes, and rarely gives way.
    assert!((60..=80).contains(&m.context_switches), "{m:?}");
}

/// A scenario of sysbench, its costs and some other load beside it, all by one seed.
fn random(seed: u64) -> Scenario {
    let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut below = move |n: u64| rng.next_u64() % n;
    let names = ["juno", "pixel3", "kunpeng920", "x5570"];
    let machine = machine(names[below(4) as usize]);
    let (threads, cpus) = (1 + below(10), 1 + below(5));
    let most = [20, 1000][below(2) as usize];
    let (locks, yields) = (1 + below(10), 1 + below(most));
    // Round figures and equal ones: steps of different CPUs fall on the same nanosecond.
    let mut ns = |most| {
        if below(3) == 0 { below(most / 10) * 10 } else { below(most) }
    };
    let (held, free, event) = (1 + ns(1500), ns(200), ns(800));
    let (wait, wake) = (ns(1000), ns(600));
    let mut load = workload(
        &machine,
        &format!(
            "sysbench:threads={threads},locks={locks},yields={yields},where=cpu0-{cpus},\
             yield_ns={held},loop_ns={free},event_ns={event},wait_ns={wait},wake_ns={wake}"
        ),
    );
    let others = workload(&machine, "runsleep:tasks=3,run_us=200,sleep_us=900,where=cpu0-3");
    load.tasks.extend(others.tasks.into_iter().take(below(4) as usize));
    Scenario { seed, ..scenario(&machine, ERAS[below(2) as usize], load, [3, 25]) }
}

/// Holds a run against the same one in single steps: trace and outcome, but for the number of
/// events. Returns how many were saved.
fn streaks_are_steps(scenario: &Scenario) -> Result<u64, TestCaseError> {
    let what = format!("{}, {}", scenario.machine.name, scenario.workload.spec);
    let (trace, mut outcome) = traced(scenario);
    let mut steps = Vec::new();
    let stepped = scenario.run_stepwise(&mut steps).expect("a run");
    let steps = String::from_utf8(steps).expect("text");
    let differ = trace.lines().zip(steps.lines()).find(|(a, b)| a != b);
    prop_assert_eq!(differ, None, "{}", what);
    prop_assert_eq!(trace.len(), steps.len(), "{}", what);
    let events = stepped.metrics.events;
    let saved = events.checked_sub(std::mem::replace(&mut outcome.metrics.events, events));
    prop_assert_eq!(outcome, stepped, "{}", what);
    saved.ok_or_else(|| TestCaseError::fail("streaks made more events"))
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn streaks_change_nothing(seed in any::<u64>().no_shrink()) {
        streaks_are_steps(&random(seed))?;
    }

    #[test]
    fn streaks_change_nothing_amid_other_load(seed in any::<u64>().no_shrink()) {
        // The seeds of `load.rs` that have mutexes.
        streaks_are_steps(&crate::load::random(seed & !(3 << 43), 12))?;
    }
}

/// A thread alone: an event or two of its own an event of sysbench, where there were 2000.
#[test]
fn a_thread_alone_is_cheap_to_simulate() {
    let juno = machine("juno");
    for era in ERAS {
        let m = run(&juno, era, "threads=1", 1000).metrics;
        assert!(m.events < 10 * m.counted + 1000, "{era}: {m:?}");
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! schbench: the parts of an idle machine's latency, requests, wake-ups, CPU locks, clocks.

use std::sync::Arc;

use perch_machine::Distance;
use perch_policy::Era;
use perch_sim::workload::{FutexCall, Op, Workload};
use perch_sim::{Dist, Scenario};
use proptest::prelude::*;
use rand_core::{RngCore, SeedableRng};

use crate::common::{
    ERAS, MS, checked, config, decisions, machine, of_tasks, run, scenario, score, task, traced,
    workload,
};

#[test]
fn the_scores_are_those_that_the_tool_prints() {
    let kunpeng = machine("kunpeng920");
    for spec in ["schbench:n=2", "schbench-old:messengers=1,workers=2"] {
        let outcome = run(&kunpeng, Era::V6_15, spec, [100, 1000]);
        let names: Vec<_> =
            outcome.scores.iter().map(|s| (s.name.as_str(), s.unit, s.higher_is_better)).collect();
        assert_eq!(
            names,
            [
                ("wake_p50.0", "us", false),
                ("wake_p90.0", "us", false),
                ("wake_p99.0", "us", false),
                ("wake_p99.9", "us", false),
                ("rps20", "req/s", true),
                ("rps", "req/s", true),
            ],
            "{spec}"
        );
        let wake: Vec<f64> = outcome.scores[..4].iter().map(|s| s.value).collect();
        assert!(wake[0] > 0.0 && wake.is_sorted(), "{spec}: {wake:?}");
    }
}

/// One worker and one messenger, each alone on its CPU of one cluster: what lies between the
/// messenger's clock and the worker's, cost by cost. Only the two calls vary, by a fifth.
#[test]
fn on_an_idle_machine_the_latency_is_its_costs_added_up() {
    let mut kunpeng = (*machine("kunpeng920")).clone();
    kunpeng.hardware.idle_states.truncate(1);
    let kunpeng = Arc::new(kunpeng);
    let h = &kunpeng.hardware;
    let near = Distance::Cluster;
    let (post, back, lines) = (1000, 500, 10);
    let fixed = u64::from(h.wake_ns)
        // The messenger takes the worker's lines, and the worker takes them back.
        + 2 * lines * u64::from(h.transfer_ns.at(near))
        + u64::from(h.ipi_ns.at(near))
        + u64::from(h.idle_states[0].exit_ns)
        + u64::from(h.context_switch_ns);
    let keys = format!(
        "schbench:n=1,where=cpu0-1,footprint=0,post_ns={post},back_ns={back},lines={lines}"
    );
    for era in ERAS {
        let outcome = run(&kunpeng, era, &keys, [100, 8000]);
        let (p50, p999) = (score(&outcome, "wake_p50.0"), score(&outcome, "wake_p99.9"));
        let us = |percent: u64| (fixed + (post + back) * percent / 100) as f64 / 1000.0;
        assert!((p50 - us(100)).abs() < 0.03, "{era}: {p50}, not {}", us(100));
        assert!(p999 > us(115) && p999 < us(121), "{era}: {p999}, not {}", us(119));
    }
}

/// A request is a sleep with its slack, a pass and little else, and workers do not disturb each
/// other while there are CPUs enough: requests are as many as that allows, counted once each.
#[test]
fn requests_are_as_many_as_their_times_allow() {
    let kunpeng = machine("kunpeng920");
    let keys = "sleep_us=100,passes=4,pass_us=200,kib=0,post_ns=100,wait_ns=100,back_ns=100,\
                nap_ns=100,footprint=0,lines=0";
    for era in ERAS {
        for n in [1, 5, 20] {
            let outcome = run(&kunpeng, era, &format!("schbench:n={n},{keys}"), [200, 2000]);
            let (rps, rps20) = (score(&outcome, "rps"), score(&outcome, "rps20"));
            let seconds = outcome.metrics.simulated_ns as f64 / 1e9;
            assert_eq!(outcome.metrics.counted as f64, rps * seconds, "{era}, {n}");
            // 950 us and two wake-ups, of the messenger and of the worker.
            let most = n as f64 * 1e9 / 950_000.0;
            assert!(rps < most && rps > most * 0.97, "{era}, {n}: {rps} of {most}");
            assert!(rps20 <= rps * 1.01 && rps20 > rps * 0.97, "{era}, {n}: {rps20} {rps}");
            // Each request is a worker's timer, and a wake-up by the messenger unless that was so
            // fast that the worker never slept.
            let per_request = outcome.metrics.wakeups as f64 / outcome.metrics.counted as f64;
            assert!(per_request > 1.9 && per_request <= 3.01, "{era}, {n}: {per_request}");
        }
    }
}

/// The task that posted itself last is woken first, and all of them have one timestamp.
#[test]
fn a_list_is_woken_from_its_top_with_one_timestamp() {
    let kunpeng = machine("kunpeng920");
    let call = |ns| FutexCall { work: Dist::Const(ns), lines: 0 };
    let waiter = |after: u64| {
        vec![
            Op::Run(Dist::Const(after)),
            Op::Post { to: 3, call: call(100) },
            Op::WaitPosted(call(100)),
            Op::NoteLatency,
            Op::NoteRequest,
            Op::Exit,
        ]
    };
    let waker = vec![Op::Run(Dist::Const(MS)), Op::WakeAll(call(1_000_000)), Op::Exit];
    let tasks = [waiter(30_000), waiter(10_000), waiter(20_000), waker];
    let tasks = tasks.into_iter().enumerate();
    let tasks: Vec<_> = tasks.map(|(i, p)| task(&kunpeng, p, i..i + 1)).collect();
    let load = Workload {
        measure: workload(&kunpeng, "schbench").measure,
        ..of_tasks(&kunpeng, "a list", tasks, 0)
    };
    for era in ERAS {
        let (trace, outcome) = traced(&scenario(&kunpeng, era, load.clone(), [0, 10]));
        let woken = decisions(&trace).into_iter().filter(|d| d.now_ns > MS);
        let woken: Vec<_> = woken.map(|d| d.task).collect();
        assert_eq!(woken, [0, 2, 1], "{era}");
        assert_eq!(outcome.metrics.counted, 3, "{era}");
        // A millisecond of work before each wake-up: about 1, 2 and 3 ms from the one timestamp.
        let (first, last) = (score(&outcome, "wake_p50.0"), score(&outcome, "wake_p99.9"));
        assert!((2000.0..2100.0).contains(&first), "{era}: {first}");
        assert!((3000.0..3100.0).contains(&last), "{era}: {last}");
    }
}

/// A worker that is preempted with its CPU's lock keeps it: the other one spins until it is back.
#[test]
fn two_on_one_cpu_never_progress_in_the_pass_together() {
    let kunpeng = machine("kunpeng920");
    let pass = 20 * MS;
    let program = vec![
        Op::LockCpu,
        Op::Run(Dist::Const(pass)),
        Op::UnlockCpu,
        Op::Count,
        Op::Sleep(Dist::Const(1000)),
        Op::Jump(0),
    ];
    for era in ERAS {
        let of = |n: usize, cpus: std::ops::Range<usize>| {
            let tasks = (0..n).map(|_| task(&kunpeng, program.clone(), cpus.clone()));
            let load = of_tasks(&kunpeng, "passes", tasks.collect(), 0);
            checked(&scenario(&kunpeng, era, load, [0, 4000]), 5 * MS, |_| {})
        };
        let (alone, two, apart) = (of(1, 0..1), of(2, 0..1), of(2, 0..2));
        assert!(alone.counted >= 198, "{era}: {alone:?}");
        assert!(apart.counted >= 2 * alone.counted - 4, "{era}: {apart:?}");
        // Both are runnable all the time, and what the second one runs of it is spinning.
        assert!(
            two.counted < alone.counted * 8 / 10 && two.counted > alone.counted * 4 / 10,
            "{era}: {} of {}",
            two.counted,
            alone.counted
        );
    }
}

/// Spinning by the clock takes its time, whatever the CPU's speed and its other tasks.
#[test]
fn who_spins_by_the_clock_is_done_when_the_clock_says_so() {
    let juno = machine("juno");
    let program = vec![Op::Spin(Dist::Const(5 * MS)), Op::Count, Op::Jump(0)];
    for era in ERAS {
        let of = |n: usize, cpu: usize| {
            let tasks = (0..n).map(|_| task(&juno, program.clone(), cpu..cpu + 1));
            let load = of_tasks(&juno, "clocks", tasks.collect(), 0);
            let outcome = scenario(&juno, era, load, [0, 1000]).run();
            outcome.expect("a scenario that runs").metrics.counted
        };
        // A LITTLE and a big CPU.
        assert!((199..=200).contains(&of(1, 0)), "{era}: {}", of(1, 0));
        assert!((199..=200).contains(&of(1, 1)), "{era}: {}", of(1, 1));
        // Two share it; the time passes for both, but each notices only when it runs.
        assert!((120..=400).contains(&of(2, 1)), "{era}: {}", of(2, 1));
    }
}

/// Every worker of a burst waits for those before it: the old tool's tail grows with them.
#[test]
fn a_burst_is_as_late_as_it_is_long() {
    let kunpeng = machine("kunpeng920");
    for era in ERAS {
        let tail = |n| {
            let spec = format!("schbench-old:messengers=1,workers={n}");
            score(&run(&kunpeng, era, &spec, [500, 4000]), "wake_p99.0")
        };
        let (few, many) = (tail(2), tail(24));
        // Some 22 futex calls and wake-ups of about a microsecond each.
        assert!(many > few + 15.0 && many < few + 100.0, "{era}: {few} {many}");
    }
}

fn random(seed: u64) -> Scenario {
    let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut below = move |n: u64| rng.next_u64() % n;
    let names = ["juno", "epyc7543", "kunpeng920", "x5570"];
    let machine = machine(names[below(4) as usize]);
    let (messengers, workers, cpus) = (1 + below(3), 1 + below(9), below(5));
    let ns = below(2000) + 1;
    let spec = match below(2) {
        0 => format!(
            "schbench:messengers={messengers},workers={workers},where=cpu0-{cpus},passes=2,\
             pass_us={},sleep_us={},post_ns={ns},wait_ns={}",
            1 + below(300),
            below(200),
            1 + below(2000)
        ),
        _ => format!(
            "schbench-old:messengers={messengers},workers={workers},where=cpu0-{cpus},\
             think_us={},sleep_us={},messenger_us={},post_ns={ns}",
            1 + below(500),
            below(500),
            below(2) * 100
        ),
    };
    let load = workload(&machine, &spec);
    Scenario { seed, ..scenario(&machine, ERAS[below(4) as usize], load, [10, 390]) }
}

/// P13: a task that posts itself is woken. A forgotten worker would sleep for ever; all workers run
/// again within the time in which each task on their CPUs spins for a slice or two, and the books
/// are right all along.
fn all_workers_run_again(scenario: &Scenario) {
    let tasks = scenario.workload.tasks.len();
    let (mut early, mut late) = (vec![0; tasks], vec![0; tasks]);
    let metrics = checked(scenario, MS, |now| {
        let ran = now.tasks.iter().map(|t| t.ran_ns).collect();
        if now.now_ns <= 200 * MS {
            early = ran;
        } else {
            late = ran;
        }
    });
    let of = format!("{}, seed {}", scenario.workload.spec, scenario.seed);
    assert!(metrics.counted > 0, "{of}");
    // The last task is the main thread, which sleeps for a second.
    for task in 0..tasks - 1 {
        assert!(late[task] > early[task], "{of}: task {task}");
    }
}

/// Eight workers on two CPUs. A newly idle CPU that takes two tasks at once runs one of them; while
/// the other still owes time the first CPU takes it back with another, and so on: it waited for
/// 387 ms. A preempted kernel takes one task, which runs at once.
#[test]
fn who_is_taken_by_a_newly_idle_cpu_runs() {
    all_workers_run_again(&random(12_937_747_326_397_084_843));
}

proptest! {
    #![proptest_config(config(40))]

    #[test]
    fn no_wake_up_is_lost(seed in any::<u64>()) {
        all_workers_run_again(&random(seed));
    }
}

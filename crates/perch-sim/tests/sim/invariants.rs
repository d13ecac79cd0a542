// SPDX-License-Identifier: GPL-2.0-or-later
//! The books of the kernel after every event, over random machines and loads of every kind: P13 (no
//! lost wake-up), P10, P14 (the same again), P1 (never on a CPU that is not allowed), and P15 (no
//! CPU idles while a task waits).

use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::Era;
use perch_sim::{Metrics, Scenario};
use proptest::prelude::*;

use crate::common::{ERAS, MS, checked, config, decisions, machine, scenario, traced, workload};
use crate::contend::with_lines;
use crate::groups::random_grouped;
use crate::guest;
use crate::load::{Dice, random};
use crate::rt::random_rt;

type Draw = fn(u64, usize) -> Scenario;

/// What is drawn, and on how many CPUs at most where machines are large.
const LOADS: [(Draw, usize); 5] = [
    (random, 80),
    (random_grouped, 80),
    (random_rt, 100),
    (with_lines, 80),
    (|seed, _| guest::drawn(seed), 0),
];

proptest! {
    #![proptest_config(config(80))]

    #[test]
    fn the_books_hold_after_every_event(seed in any::<u64>().no_shrink()) {
        for (draw, _) in LOADS {
            checked(&draw(seed, 12), 0, |_| {});
        }
    }

    #[test]
    fn the_books_hold_on_larger_machines(seed in any::<u64>().no_shrink()) {
        for (draw, cpus) in LOADS {
            checked(&draw(seed, cpus), 200_000, |_| {});
        }
    }

    /// P14, and that neither a trace nor a look inside changes a run.
    #[test]
    fn the_same_scenario_gives_the_same_trace(seed in any::<u64>().no_shrink()) {
        for (draw, _) in LOADS {
            let scenario = draw(seed, 48);
            let first = traced(&scenario);
            prop_assert!(first == traced(&scenario), "{} {}", scenario.workload.spec, seed);
            prop_assert_eq!(&first.1, &scenario.run().expect("a scenario that runs"));
            prop_assert_eq!(&first.1.metrics, &checked(&scenario, 100_000, |_| {}));
        }
    }

    #[test]
    fn every_decision_is_allowed(seed in any::<u64>().no_shrink()) {
        let scenario = random(seed, 48);
        for decision in decisions(&traced(&scenario).0) {
            let allowed = &scenario.workload.tasks[decision.task].allowed;
            prop_assert!(allowed.contains(decision.cpu), "{:?}", decision);
        }
    }
}

proptest! {
    #![proptest_config(config(8))]

    /// CPUs take up to half a millisecond to leave their idle loops, so that passes meet some that
    /// are on their way out.
    #[test]
    fn the_books_hold_while_much_is_balanced(seed in any::<u64>().no_shrink()) {
        let scenario = random(seed, 10);
        let mut machine = Machine::clone(&scenario.machine);
        machine.hardware.switch_in_ns = Some((seed >> 32) as u32 % 500_000);
        let machine = Arc::new(machine);
        checked(&Scenario { machine, measure_ns: 120 * MS, ..scenario }, 0, |_| {});
    }
}

/// Machines, a workload, how long it runs and how often the books are checked, nanoseconds.
const WORKLOADS: &[(&[&str], &str, [u64; 2], u64)] = &[
    (BOTH, "tcp_rr:n=20,where=node0", [5, 15], MS / 8),
    (BOTH, "tbench:n=40,where=node0", [5, 15], MS / 8),
    (BOTH, "udp_rr:n=9", [5, 15], MS / 8),
    (BOTH, "tcp_stream:n=9", [5, 15], MS / 8),
    (BOTH, "pipe:pairs=7", [5, 15], MS / 8),
    (BOTH, "sysbench:threads=20,locks=3,yields=50,where=cpu0-15", [5, 15], MS / 8),
    (BOTH, "hackbench:groups=3,fds=6,loops=4", [5, 15], MS / 8),
    (BOTH, "hackbench:groups=3,fds=6,loops=40,pipe=yes", [5, 15], MS / 8),
    (BOTH, "make:files=30,compile_ms=1,assemble_ms=1", [0, 60], MS / 8),
    (&["juno"], "sysbench:threads=6,yields=20", [2, 4], 0),
    (&["juno"], "sysbench:threads=9,locks=2,yields=5", [2, 3], 0),
    (&["juno"], "sysbench:threads=4,locks=1,yields=3,where=cpu1-2", [2, 3], 0),
    (&["juno"], "sysbench:threads=3,locks=1,yields=3,where=cpu0", [2, 3], 0),
    (&["juno"], "hackbench:groups=1,fds=2,loops=20", [0, 2000], 0),
    // Sockets are full much of the time: a hundred writers each.
    (&["juno"], "hackbench:groups=1,fds=40,loops=3,size=4000", [0, 2000], MS / 20),
    (&["juno"], "hackbench:groups=1,fds=1,loops=400,size=16064,where=cpu0", [0, 2000], 0),
    (&["juno"], "hackbench:groups=1,fds=9,loops=40,size=4000,pipe=yes", [0, 2000], MS / 20),
    (&["juno"], "hackbench:groups=10", [0, 2000], MS / 2),
    (&["x5570"], "tbench-net:n=5", [0, 30], 0),
    (&["x5570"], "httperf:at_once=2,calls=30,burst=10", [0, 30], 0),
    (&["x5570"], "httperf:at_once=2,calls=3,burst=1,think_us=100", [0, 30], 0),
    (&["x5570"], "trade:users=9,think_us=100", [0, 30], 0),
    (&["x5570"], "volano:rooms=2,users=5", [0, 30], 0),
    // The work of its ticks takes time, and wake-ups wait for it.
    (&["epyc7543"], "runsleep:tasks=150,run_us=150,sleep_us=60", [0, 40], MS / 10),
];
const BOTH: &[&str] = &["kunpeng920", "epyc7543"];

/// Checked as unchecked; something is done.
fn holds(name: &str, era: Era, spec: &str, ms: [u64; 2], every_ns: u64) -> Metrics {
    let mut machine = Machine::clone(&machine(name));
    if spec.starts_with("runsleep") {
        machine.hardware.tick_ns = 5000;
    }
    let machine = Arc::new(machine);
    let scenario = scenario(&machine, era, workload(&machine, spec), ms);
    let metrics = checked(&scenario, every_ns, |_| {});
    assert_eq!(metrics, scenario.run().expect("a run").metrics, "{name} {era} {spec}");
    assert!(metrics.counted > 0, "{name} {era} {spec}: {metrics:?}");
    metrics
}

#[test]
fn the_books_hold_under_every_workload_of_the_library() {
    for &(machines, spec, ms, every_ns) in WORKLOADS {
        for era in ERAS {
            for name in machines {
                holds(name, era, spec, ms, every_ns);
            }
        }
    }
}

#[test]
fn every_workload_runs_in_every_class() {
    for spec in [
        "tcp_rr:n=20,where=node0",
        "pipe:pairs=7",
        "sysbench:threads=20,locks=3,yields=50,where=cpu0-15",
        "hackbench:groups=3,fds=6,loops=4",
        "schbench:workers=20",
    ] {
        for (era, class) in ERAS.into_iter().zip(["fifo:1", "rr:50", "fifo:99", "rr:99"]) {
            for name in BOTH {
                let metrics = holds(name, era, &format!("{spec},class={class}"), [5, 15], MS / 8);
                assert!(metrics.rt.wakeups > 0 && metrics.wakeups == 0, "{spec} {class}");
            }
        }
    }
}

/// P15: the longest time for which one CPU was idle while, at every look a millisecond apart, some
/// task waited that may run there.
fn idle_while_waiting(scenario: &Scenario) -> u64 {
    let (mut since, mut longest) = (vec![None; scenario.machine.cpus.len()], 0);
    checked(scenario, MS, |now| {
        let tasks = now.tasks.iter().zip(&scenario.workload.tasks);
        let waiting = tasks.filter(|(t, _)| t.waiting);
        let waiting: Vec<_> = waiting.map(|(_, spec)| &spec.allowed).collect();
        for (cpu, c) in now.cpus.iter().enumerate() {
            if c.idle && waiting.iter().any(|allowed| allowed.contains(cpu)) {
                let from = *since[cpu].get_or_insert(now.now_ns);
                longest = longest.max(now.now_ns - from);
            } else {
                since[cpu] = None;
            }
        }
    });
    longest
}

/// An idle CPU has a periodic pass over its widest domain once in the domain's interval, which is
/// the domain's weight in milliseconds, up to twice that while passes find nothing. So twice the
/// weight is the bound: 48 ms on 24 CPUs, 32 ms on 16. Over 10,000 of the loads below the longest
/// were 13 and 9 ms.
///
/// The CPUs are equal, and the tasks may run anywhere, have one weight and send no messages. CFS
/// before 5.7 divides unequal CPUs and weights by load; two tasks that talk to each other are hot
/// and share a CPU for good, as each waits for microseconds; and five pinned hogs may leave one of
/// their CPUs idle (docs/model.md#missing-not-yet-confirmed-by-a-trace).
fn assert_no_cpu_idles(scenario: &Scenario) {
    let widest = scenario.topology.domains(0).map(|d| d.span().weight());
    let bound = 2 * u64::from(widest.max().unwrap_or(1)) * MS;
    let longest = idle_while_waiting(scenario);
    assert!(
        longest <= bound,
        "{}, {}, {}: a CPU was idle for {} ms while a task waited, more than {} ms",
        scenario.machine.name,
        scenario.policy.era(),
        scenario.workload.spec,
        longest / MS,
        bound / MS
    );
}

proptest! {
    #![proptest_config(config(80))]

    #[test]
    fn p15_no_cpu_idles_for_an_interval_while_a_task_waits(seed in any::<u64>().no_shrink()) {
        let mut dice = Dice::new(seed);
        let machine = machine(["jacobsville", "x5570"][dice.range(0, 1) as usize]);
        let era = ERAS[dice.range(0, 4) as usize];
        let cpus = machine.cpus.len() as u64;
        let (tasks, run_us) = (dice.range(cpus / 2, 3 * cpus), dice.range(200, 5000));
        let sleep_us = if dice.chance(30) { 0 } else { dice.range(0, 5000) };
        let spec = format!("runsleep:tasks={tasks},run_us={run_us},sleep_us={sleep_us}");
        let mut scenario = scenario(&machine, era, workload(&machine, &spec), [0, 400]);
        scenario.seed = seed;
        assert_no_cpu_idles(&scenario);
    }
}

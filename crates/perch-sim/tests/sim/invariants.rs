// SPDX-License-Identifier: GPL-2.0-or-later
//! The books of the kernel after every event, over random machines and loads: P13 (no lost
//! wake-up), P1 (never on a CPU that is not allowed), and P15 (no CPU idles while a task waits).

use perch_sim::Scenario;
use proptest::prelude::*;

use crate::common::{ERAS, MS, checked, config, decisions, machine, scenario, traced, workload};
use crate::load::{Dice, random};

proptest! {
    #![proptest_config(config(80))]

    #[test]
    fn the_books_hold_after_every_event(seed in any::<u64>().no_shrink()) {
        checked(&random(seed, 12), 0, |_| {});
    }

    #[test]
    fn the_books_hold_on_larger_machines(seed in any::<u64>().no_shrink()) {
        checked(&random(seed, 80), 200_000, |_| {});
    }

    #[test]
    fn looking_inside_changes_nothing(seed in any::<u64>().no_shrink()) {
        let scenario = random(seed, 24);
        let plain = scenario.run().expect("a scenario that runs");
        prop_assert_eq!(plain.metrics, checked(&scenario, 100_000, |_| {}));
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

    #[test]
    fn the_books_hold_while_much_is_balanced(seed in any::<u64>().no_shrink()) {
        let scenario = random(seed, 10);
        checked(&Scenario { measure_ns: 120 * MS, ..scenario }, 0, |_| {});
    }
}

#[test]
fn the_books_hold_under_every_workload_of_the_library() {
    let kunpeng = machine("kunpeng920");
    let smt = machine("epyc7543");
    for spec in [
        "tcp_rr:n=20,where=node0",
        "tbench:n=40,where=node0",
        "udp_rr:n=9",
        "tcp_stream:n=9",
        "pipe:pairs=7",
        "sysbench:threads=20,locks=3,yields=50,where=cpu0-15",
        "hackbench:groups=3,fds=6,loops=4",
    ] {
        for era in ERAS {
            for machine in [&kunpeng, &smt] {
                checked(&scenario(machine, era, workload(machine, spec), [5, 15]), MS / 8, |_| {});
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

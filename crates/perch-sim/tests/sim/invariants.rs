// SPDX-License-Identifier: GPL-2.0-or-later
//! The books of the kernel after every event, over random machines and loads: P13 (no lost
//! wake-up), P1 (never on a CPU that is not allowed), and P15 as a report.

use perch_sim::Scenario;
use proptest::prelude::*;

use crate::common::{ERAS, MS, checked, config, decisions, machine, scenario, traced, workload};
use crate::load::random;

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
        "pipe:pairs=7",
        "sysbench:threads=20,locks=3,yields=50,where=cpu0-15",
        "hackbench:groups=3,fds=6,loops=4",
    ] {
        for era in ERAS {
            for machine in [&kunpeng, &smt] {
                checked(
                    &scenario(machine, era, workload(machine, spec), [5, 15]),
                    MS / 8,
                    |_| {},
                );
            }
        }
    }
}

/// P15, a report: moments (a millisecond apart) at which a CPU has been idle for more than a
/// balance interval of its widest domain while a task that may run there waited elsewhere.
fn idle_while_waiting(scenario: &Scenario) -> (u64, u64) {
    let n = scenario.machine.cpus.len();
    let widest = scenario
        .topology
        .domains(0)
        .map(|d| d.span().weight())
        .max()
        .unwrap_or(1);
    let interval_ns = u64::from(widest) * MS;
    let (mut idle_since, mut bad, mut moments) = (vec![0; n], 0, 0);
    checked(scenario, MS, |now| {
        for (cpu, c) in now.cpus.iter().enumerate() {
            if !c.idle {
                idle_since[cpu] = now.now_ns;
            }
        }
        moments += 1;
        let long = (0..n).filter(|&c| now.now_ns - idle_since[c] > interval_ns);
        let mut long = long.peekable();
        if long.peek().is_none() {
            return;
        }
        let tasks = now.tasks.iter().zip(&scenario.workload.tasks);
        let waiting: Vec<_> = tasks
            .filter(|(t, _)| t.waiting)
            .map(|(_, s)| &s.allowed)
            .collect();
        bad += u64::from(long.any(|cpu| waiting.iter().any(|allowed| allowed.contains(cpu))));
    });
    (bad, moments)
}

#[test]
fn report_cpus_idle_while_tasks_wait() {
    let jacobsville = machine("jacobsville");
    for era in ERAS {
        for spec in [
            "runsleep:tasks=24,run_us=3000,sleep_us=0",
            "runsleep:tasks=40,run_us=3000,sleep_us=3000",
            "runsleep:tasks=30,run_us=5000,sleep_us=500",
            // Part of a cluster: only the mark of an imbalanced group shows it to the balancer of 6.5.
            "runsleep:tasks=5,sleep_us=0,where=cpu0-4",
            "tcp_rr:n=20",
        ] {
            let load = workload(&jacobsville, spec);
            let (bad, moments) = idle_while_waiting(&scenario(&jacobsville, era, load, [0, 400]));
            println!("P15 {era} {spec}: {bad} of {moments} moments");
        }
    }
}

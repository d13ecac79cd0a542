// SPDX-License-Identifier: GPL-2.0-or-later
//! Parts of a short trace for each era, so that a change of behaviour shows in review. When the
//! change is meant: `INSTA_UPDATE=always ./x test -p perch-sim snapshots`, then read the
//! difference and commit it.

use std::sync::Arc;

use perch_machine::{Hardware, Machine};
use perch_policy::Mode;
use perch_sim::Outcome;

use crate::common::{ERAS, machine, policy, scenario, traced, workload};

/// With its own times, and on a machine with default costs: fitting a parameter of a workload or
/// of kunpeng920 changes no snapshot.
const SPEC: &str =
    "tcp_rr:n=2,before_ns=2500,after_ns=1300,lines=30,footprint=300,gap_us=1000,startup_us=1500";

/// Where the tasks started, what was decided in the last 100 µs, and some figures.
fn summary(trace: &str, outcome: &Outcome) -> String {
    let shown = |line: &&str| {
        let now_ns: u64 = line.split(' ').next().and_then(|n| n.parse().ok()).expect("a time");
        line.contains("reason=slow path") || now_ns >= 11_900_000
    };
    let lines: Vec<&str> = trace.lines().filter(shown).collect();
    let m = &outcome.metrics;
    format!(
        "{}\n{} decisions, counted {}, switches {}, preemptions {}, events {}, busy {} ns\n",
        lines.join("\n"),
        m.wakeups,
        m.counted,
        m.context_switches,
        m.preemptions,
        m.events,
        m.busy_ns
    )
}

#[test]
fn two_tcp_rr_pairs() {
    let mut kunpeng = Machine::clone(&machine("kunpeng920"));
    kunpeng.hardware = Hardware::default();
    let kunpeng = Arc::new(kunpeng);
    for era in ERAS {
        for mode in [Mode::Off, Mode::Perch] {
            let mut scenario = scenario(&kunpeng, era, workload(&kunpeng, SPEC), [0, 12]);
            scenario.policy = policy(era, mode);
            let (trace, outcome) = traced(&scenario);
            let name = format!("tcp_rr-{era}-{mode}");
            insta::assert_snapshot!(name, summary(&trace, &outcome));
        }
    }
}

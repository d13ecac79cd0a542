// SPDX-License-Identifier: GPL-2.0-or-later
//! Parts of a short trace for each era, so that a change of behaviour shows in review. When the
//! change is meant: `INSTA_UPDATE=always ./x test -p perch-sim snapshots`, then read the
//! difference and commit it.

use std::sync::Arc;

use perch_machine::{Hardware, Machine};
use perch_policy::Mode;

use crate::common::{ERAS, machine, policy, scenario, summary, traced, workload};

/// With its own times, and on a machine with default costs: fitting a parameter of a workload or
/// of kunpeng920 changes no snapshot.
const SPEC: &str =
    "tcp_rr:n=2,before_ns=2500,after_ns=1300,lines=30,footprint=300,gap_us=1000,startup_us=1500";

#[test]
fn two_tcp_rr_pairs() {
    let mut kunpeng = Machine::clone(&machine("kunpeng920"));
    kunpeng.hardware = Hardware::default();
    let kunpeng = Arc::new(kunpeng);
    // Where the tasks started, and what was decided in the last 15 µs.
    let shown = |now_ns: u64, line: &str| line.contains("slow path") || now_ns >= 11_985_000;
    let mut text = String::new();
    for era in ERAS {
        for mode in [Mode::Off, Mode::Perch] {
            let mut scenario = scenario(&kunpeng, era, workload(&kunpeng, SPEC), [0, 12]);
            scenario.policy = policy(era, mode);
            let (trace, outcome) = traced(&scenario);
            text += &format!("era={era} cluster={mode}\n{}", summary(&trace, &outcome, shown));
        }
    }
    insta::assert_snapshot!(text);
}

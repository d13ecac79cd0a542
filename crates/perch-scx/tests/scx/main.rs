// SPDX-License-Identifier: GPL-2.0-or-later
//! perch's own scheduler over random machines and loads.

// The simulator's own random machines and loads.
#[path = "../../../perch-sim/tests/sim/common.rs"]
#[allow(dead_code)]
mod common;
#[path = "../../../perch-sim/tests/sim/load.rs"]
#[allow(dead_code)]
mod load;

mod foreign;
mod invariants;
mod placed;
mod preempt;

use perch_sim::workload::Workload;
use perch_sim::{Outcome, Scenario};

/// A workload on a machine of the library under perch with these settings, after 100 ms.
fn scenario(machine: &str, workload: &str, set: &str, measure_ns: u64) -> Scenario {
    let machine = std::sync::Arc::new(perch_machine::resolve(machine).unwrap());
    let workload = Workload::parse(workload, &machine).unwrap();
    Scenario {
        scheduler: Some(perch_scx::live(set).unwrap()),
        warmup_ns: 100_000_000,
        ..Scenario::plain(machine, workload, measure_ns)
    }
}

fn under_perch(machine: &str, workload: &str, set: &str, measure_ns: u64) -> Outcome {
    let scenario = scenario(machine, workload, set, measure_ns);
    scenario.run().unwrap()
}

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

use perch_policy::{Era, Modes, Policy, Topology};
use perch_sim::workload::Workload;
use perch_sim::{Outcome, RootDomain, Scenario};

/// A workload on a machine of the library under perch with these settings, after 100 ms.
fn scenario(machine: &str, workload: &str, set: &str, measure_ns: u64) -> Scenario {
    let machine = std::sync::Arc::new(perch_machine::resolve(machine).unwrap());
    Scenario {
        topology: Topology::new(&machine),
        policy: Policy::new(Era::V7_2, Modes::default()),
        hz: 250,
        root_domain: RootDomain::Stock,
        scheduler: Some(perch_scx::live(set).unwrap()),
        workload: Workload::parse(workload, &machine).unwrap(),
        warmup_ns: 100_000_000,
        measure_ns,
        seed: 1,
        machine,
    }
}

fn under_perch(machine: &str, workload: &str, set: &str, measure_ns: u64) -> Outcome {
    let scenario = scenario(machine, workload, set, measure_ns);
    scenario.run().unwrap()
}

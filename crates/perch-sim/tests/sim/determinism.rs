// SPDX-License-Identifier: GPL-2.0-or-later
//! P2: nothing that another arm does shows in the trace of off. P3: without clusters every mode of
//! cluster is off. `invariants.rs` holds P14.

use std::sync::Arc;

use perch_machine::{Machine, library};
use perch_policy::{Mode, Topology};
use perch_sim::Scenario;
use proptest::prelude::*;

use crate::common::{ERAS, config, machine, policy, scenario, traced, workload};
use crate::load::random;

fn in_mode(scenario: &Scenario, mode: Mode) -> Scenario {
    Scenario { policy: policy(scenario.policy.era(), mode), ..scenario.clone() }
}

/// Off in the same process, while every other arm runs beside it and before it.
fn off_is_alone(scenario: &Scenario) -> Result<(), String> {
    let off = in_mode(scenario, Mode::Off);
    let alone = traced(&off);
    let beside = std::thread::scope(|scope| {
        for mode in [Mode::Posted, Mode::Upstream, Mode::Perch] {
            let other = in_mode(scenario, mode);
            scope.spawn(move || traced(&other));
        }
        scope.spawn(|| traced(&off)).join().expect("off runs")
    });
    if alone == beside && alone == traced(&off) { Ok(()) } else { Err("off saw the others".into()) }
}

/// Every mode gives the trace and the outcome of off.
fn cluster_is_nothing(scenario: &Scenario) -> Result<(), String> {
    let (trace, outcome) = traced(&in_mode(scenario, Mode::Off));
    for mode in [Mode::Posted, Mode::Upstream, Mode::Perch] {
        let (other, counted) = traced(&in_mode(scenario, mode));
        let differs = trace.lines().zip(other.lines()).find(|(a, b)| a != b);
        if let Some((off, on)) = differs {
            return Err(format!("{mode} says\n{on}\nwhere off says\n{off}"));
        }
        if trace != other || outcome != counted {
            return Err(format!("{mode} differs from off"));
        }
    }
    Ok(())
}

/// The machine of a scenario without its clusters.
fn without_clusters(mut scenario: Scenario) -> Scenario {
    let mut machine = Machine::clone(&scenario.machine);
    machine.cpus.iter_mut().for_each(|cpu| cpu.cluster = None);
    scenario.topology = Topology::new(&machine);
    scenario.machine = Arc::new(machine);
    scenario
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn threads_do_not_disturb_one_another(seed in any::<u64>().no_shrink()) {
        off_is_alone(&random(seed, 24)).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn without_clusters_every_mode_is_off(seed in any::<u64>().no_shrink()) {
        let scenario = without_clusters(random(seed, 32));
        prop_assert!(!scenario.topology.has_clusters());
        cluster_is_nothing(&scenario).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn another_seed_gives_another_trace() {
    let kunpeng = machine("kunpeng920");
    let spec = workload(&kunpeng, "tcp_rr:n=4,where=node0");
    let one = scenario(&kunpeng, ERAS[0], spec, [0, 12]);
    let two = Scenario { seed: 2, ..one.clone() };
    assert_ne!(traced(&one).0, traced(&two).0);
}

#[test]
fn machines_of_the_library_without_clusters_make_no_difference() {
    let loads =
        ["tcp_rr:n=24", "tbench:n=8", "runsleep:tasks=3/cpu,run_us=90,sleep_us=60", "pipe:pairs=9"];
    let mut tried = 0;
    for name in library::names() {
        let machine = machine(name);
        if Topology::new(&machine).has_clusters() {
            continue;
        }
        for (i, spec) in loads.into_iter().enumerate() {
            let load = workload(&machine, spec);
            let scenario = scenario(&machine, ERAS[i % 3], load, [0, 16]);
            cluster_is_nothing(&scenario).unwrap_or_else(|e| panic!("{name}, {spec}: {e}"));
            tried += 1;
        }
    }
    assert!(tried >= 12, "the library has machines without clusters");
}

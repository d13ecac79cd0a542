// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the counts of an experiment's loads, with the simulator.

use crate::library;
use crate::run::{RunOptions, run};

/// The tallies add up the counts of loads over arms and repetitions, in whatever order these ran.
#[test]
fn what_loads_did_does_not_depend_on_the_jobs() {
    let report = |jobs| {
        let options = RunOptions {
            only: Some("hackbench/juno/mean".to_string()),
            repetitions: Some(2),
            jobs,
            ..RunOptions::default()
        };
        run(&library::resolve("capacity-wakeup").unwrap(), &options, &mut |_, _| {}).unwrap()
    };
    let (alone, both) = (report(1), report(2));
    assert_eq!(alone, both);
    let [load] = &alone.loads[..] else {
        panic!("{:?}", alone.loads);
    };
    assert_eq!((load.benchmark.as_str(), load.place.as_str()), ("hackbench", "juno"));
    assert!(load.row.is_none() && !load.decisions.is_empty() && !load.migrations.is_empty());
    assert_eq!((load.latency.len(), load.cpus.len(), alone.machines_toml.len()), (2, 2, 1));
    for (arm, cpus) in load.latency.iter().zip(&load.cpus) {
        assert_eq!(arm.arm, cpus.arm);
        assert!(arm.wakeups > 1000 && !arm.buckets.is_empty(), "{arm:?}");
        assert!(cpus.busy_pct.iter().all(|pct| *pct > 1.0), "{cpus:?}");
    }
}

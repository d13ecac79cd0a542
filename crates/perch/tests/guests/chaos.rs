// SPDX-License-Identifier: GPL-2.0-or-later
//! A short round of chaos: most storms at the same time, and every task still runs.

use perch_chaos::{Plan, Report, Storm};
use perch_lab::Cpus;

use crate::guest::{resolve, shell};

/// CPUs that go and loaders that are killed are robust.rs's, which need less of the host for it.
#[test]
fn tasks_run_through_a_storm() {
    let plan = Plan {
        seed: 1,
        perch: Some(Vec::new()),
        loaded_first: true,
        hogs: 1,
        sleepers: 4,
        pipes: 1,
        storms: vec![
            Storm::Affinity,
            Storm::Groups,
            Storm::Limits,
            Storm::Classes,
            Storm::Forks,
            Storm::Freezes,
            Storm::Memory,
        ],
        seconds: 2,
    };
    let words = serde_json::to_string(&plan).unwrap();
    let script = format!("/bin/perch agent chaos '{words}'");
    let text = shell(&resolve("kunpeng920"), Cpus::AtMost(4), "7.2", &script);
    let report: Report = serde_json::from_str(&text).unwrap();
    println!("{plan}\n  {report}");
    assert!(report.faults.is_empty(), "{}", report.log);
    assert_eq!(report.plan, plan);
    // Each storm did something, many times.
    for storm in &plan.storms {
        let done = report.done[storm.name()];
        assert!(done >= 5, "{} did {done} things", storm.name());
    }
    assert!(report.longest_ms > 0.0);
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Every release of Linux is an era that runs, also one between those that were measured.

use perch_policy::{Era, Modes, Policy};
use perch_sim::Scenario;

use crate::common::{MS, checked, machine, scenario, traced, workload};
use crate::load::random;

/// Every release, the oldest first.
fn releases() -> Vec<Era> {
    let parsed = (3..8).flat_map(|major| (0..21).map(move |minor| format!("{major}.{minor}")));
    parsed.filter_map(|name| name.parse().ok()).collect()
}

#[test]
fn every_release_runs_with_its_books_in_order() {
    let releases = releases();
    assert_eq!(releases.len(), 16 + 21 + 20 + 20 + 3);
    for (n, era) in (0u64..).zip(releases) {
        for seed in 4 * n..4 * n + 4 {
            let scenario =
                Scenario { policy: Policy::new(era, Modes::default()), ..random(seed, 12) };
            if scenario.workload.check(era).is_ok() {
                checked(&scenario, MS, |_| {});
            }
        }
    }
}

#[test]
fn releases_without_a_change_between_them_have_the_same_trace() {
    let of = |name: &str| {
        let machine = machine("jacobsville");
        let load = workload(&machine, "hackbench:groups=2,loops=4");
        let era = name.parse().expect(name);
        traced(&scenario(&machine, era, load, [0, 1000])).0
    };
    assert_eq!(of("6.15"), of("6.18"));
    assert_eq!(of("6.12"), of("6.13"));
    // Delayed dequeue.
    assert_ne!(of("6.11"), of("6.12"));
}

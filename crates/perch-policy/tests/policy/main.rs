// SPDX-License-Identifier: GPL-2.0-or-later
//! The policy over random machines, loads and affinities.
//!
//! A property that fails prints the seed of its case; proptest also keeps the case in a
//! `.regressions` file beside the test, which brings it back first on the next run.

mod affine;
mod behind;
mod cache;
mod capable;
mod capacity;
mod decision;
mod differential;
mod early;
mod gather;
mod model;
mod modes;
mod moves;
mod overload;
mod overload_threads;
mod properties;
mod question;
mod sched_idle;
mod slow;
mod spread;
mod steer;
mod steering;
mod topology;

use perch_policy::testing::{dice, machines, scenario};

/// As many cases as `PROPTEST_CASES` says, 256 without it; failures are kept beside the source.
pub fn config() -> proptest::test_runner::Config {
    use proptest::test_runner::{Config, FileFailurePersistence};
    Config {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..Config::default()
    }
}

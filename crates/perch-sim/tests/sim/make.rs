// SPDX-License-Identifier: GPL-2.0-or-later
//! A build by make: every file is compiled, and jobs share the work.

use perch_machine::Machine;
use perch_policy::Era;

use crate::common::{self, ERAS, machine};

/// The seconds that a build takes.
fn seconds(machine: &std::sync::Arc<Machine>, era: Era, keys: &str) -> f64 {
    let spec = format!("make:files=40,compile_ms=10,assemble_ms=2,{keys}");
    let outcome = common::run(machine, era, &spec, [0, 60_000]);
    assert_eq!(outcome.metrics.counted, 40, "{era} {keys}");
    outcome.scores[0].value
}

#[test]
fn jobs_share_the_work() {
    let kunpeng = machine("kunpeng920");
    for era in ERAS {
        // The jobs' own sleeps aside, one job does one thing at a time on however many CPUs.
        let one = seconds(&kunpeng, era, "jobs=1,io_us=0,where=cpu0-7");
        // 12 ms of compiling and assembling, 2.5 ms of forks, execs and exits, and make's own.
        assert!((0.4..0.9).contains(&one), "{era}: {one}");
        let eight = seconds(&kunpeng, era, "jobs=8,io_us=0,where=cpu0-7");
        assert!((1.0 / 8.0..0.35).contains(&(eight / one)), "{era}: {eight} of {one}");
        // More jobs than CPUs do no more at a time.
        let many = seconds(&kunpeng, era, "jobs=40,io_us=0,where=cpu0-7");
        assert!(many > 0.6 * eight, "{era}: {many}, {eight}");
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Requests that would take more memory than the budget are refused before they begin.

use super::{COMPARE, at, experiment};
use crate::support::refused;

/// None of these begins to run: each would take all memory of the host.
#[test]
fn what_is_over_the_budget() {
    for (workload, key) in [
        ("runsleep:tasks=100000/cpu", "tasks=100000/cpu: 12800000 tasks"),
        ("pipe:pairs=1000000", "pairs=1000000: 2000000 tasks"),
        ("trade:users=1000000", "users=1000000: 3000000 tasks"),
        ("httperf:at_once=1000000", "at_once=1000000 and burst=100: 2000000 tasks"),
    ] {
        let words = [key, "of memory, and the budget is 1GiB", "--budget "];
        refused(&format!("{COMPARE} -w {workload}"), &words);
    }
    refused(
        &format!("{COMPARE} -w pipe --repetitions 1000000000"),
        &["repetitions=1000000000 and arms=1", "--budget 239GiB"],
    );
    refused(
        &format!("{COMPARE} -w pipe:pairs=1000 --budget 1MiB"),
        &["pairs=1000: 2000 tasks", "the budget is 1MiB", "--budget 4MiB"],
    );
    refused(
        "experiment run cluster-scan --repetitions 1000000000",
        &["repetitions=1000000000 and arms=2", "--budget "],
    );
    let path = experiment("what_is_over_the_budget", "tbench:{row}", "pipe:pairs=1000000,{row}");
    refused(
        &format!("experiment run {path}"),
        &[&at(&path, "pipe:pairs"), "workload", "pairs=1000000: 2000000 tasks"],
    );
    for memory in ["1", "0GiB", "1GB", "much"] {
        refused(
            &format!("{COMPARE} -w pipe --budget {memory}"),
            &["--budget", "KiB, MiB, GiB or TiB, for example 4GiB"],
        );
    }
}

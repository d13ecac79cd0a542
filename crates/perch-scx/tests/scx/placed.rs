// SPDX-License-Identifier: GPL-2.0-or-later
//! Where wakees go under perch.

use crate::under_perch;
use perch_sim::Outcome;

/// What a workload does under perch with these settings, in 100 ms.
fn run(machine: &str, workload: &str, set: &str) -> Outcome {
    under_perch(machine, workload, set, 100_000_000)
}

/// Half of the CPUs idle, so that a wakee that meets a busy CPU was led there by a wrong mark. The
/// machines have clusters, last-level caches of four cores with threads, and CPUs of two kinds.
#[test]
fn idle_cpus_are_marked_and_no_others() {
    for machine in ["jacobsville", "epyc7543", "juno"] {
        for load in ["pipe:pairs=25%", "tcp_rr:n=12%"] {
            let metrics = run(machine, load, "behind=off").metrics;
            let (all, busy) = (metrics.wakeups, metrics.chosen_busy);
            // Forks of the first milliseconds may have left two tasks on one CPU.
            assert!(all > 1000, "{machine} {load}: {all}");
            assert!(busy * 100 <= all, "{machine} {load}: {busy} of {all}");
        }
    }
}

/// Each end used to wait for a hog of its own, 4 ms each time: 120 transactions a second.
#[test]
fn a_connection_beside_hogs_meets_on_one_cpu() {
    for machine in ["jacobsville", "x5570"] {
        let rate = run(machine, "tcp_rr:n=12%,hogs=100%", "").scores[0].value;
        assert!(rate > 5000.0, "{machine}: {rate}");
    }
}

/// The waker of a pipe sleeps at once, and its wakee goes behind it; a waker with more to do has its
/// wakee on another CPU.
#[test]
fn the_ends_of_a_pipe_share_a_cpu() {
    let rates = |workload: &str| {
        ["", "behind=off"].map(|set| run("jacobsville", workload, set).scores[0].value)
    };
    let [behind, apart] = rates("pipe:pairs=25%");
    assert!(behind > 2.0 * apart, "{behind} {apart}");
    let [with, without] = rates("schbench:n=50%");
    assert!(with > 0.98 * without, "{with} {without}");
}

/// The tasks are born in two of the four LLCs, 48 of 66 in one of 32 CPUs. Half of all wakees used to
/// take each other's CPUs there for good.
#[test]
fn tasks_that_sleep_often_leave_a_busy_llc() {
    let metrics = run("kunpeng920", "tbench:n=25%", "").metrics;
    let same_cpu = metrics.migrations[0];
    assert!(same_cpu * 100 > metrics.wakeups * 95, "{same_cpu} of {}", metrics.wakeups);
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Who interrupts whom.

use perch_policy::{Modes, Policy};

use crate::{scenario, under_perch};

/// Bursts a second of a task that runs 0.5 ms and sleeps 2 ms beside a hog on one CPU; alone it has 400.
fn bursts(nice: i32, hogs_nice: i32) -> f64 {
    let workload = format!(
        "runsleep:tasks=1,nice={nice},run_us=500,sleep_us=2000,where=cpu0,hogs=1,hogs_nice={hogs_nice}"
    );
    under_perch("jacobsville", &workload, "", 1_000_000_000).scores[0].value
}

/// A wakee used to wait until the slice of a lighter hog was over, 1.5 ms in the mean: 250 bursts.
#[test]
fn a_wakee_interrupts_a_lighter_hog_at_once() {
    let [lighter, equal, heavier] = [10, 0, -10].map(|nice| bursts(0, nice));
    assert!(lighter > 380.0, "{lighter}");
    assert!(heavier < equal && equal < lighter, "{heavier} {equal} {lighter}");
    // It is the difference that counts.
    assert!(bursts(-5, 5) > 380.0);
}

/// Two real-time tasks, one of which always runs, and a hog on one CPU. The kernel's server is for fair
/// tasks only up to 6.19, so the hog waits until the watchdog comes.
#[test]
fn real_time_tasks_that_never_rest_end_a_scheduler_without_a_server() {
    let run = |era: &str| {
        let workload = "runsleep:tasks=2,class=fifo:1,run_us=1000000,sleep_us=1,where=cpu0,hogs=1";
        let mut scenario = scenario("jacobsville", workload, "", 50_000_000_000);
        scenario.policy = Policy::new(era.parse().unwrap(), Modes::default());
        scenario.run().map(|_| ())
    };
    assert!(run("7.0").is_ok());
    let said = run("6.19").unwrap_err().to_string();
    assert!(said.contains("runnable task stall"), "{said}");
}

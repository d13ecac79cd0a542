// SPDX-License-Identifier: GPL-2.0-or-later
//! Who interrupts whom.

use crate::under_perch;

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
    assert!(
        heavier < equal && equal < lighter,
        "{heavier} {equal} {lighter}"
    );
    // It is the difference that counts.
    assert!(bursts(-5, 5) > 380.0);
}

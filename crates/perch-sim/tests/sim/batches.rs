// SPDX-License-Identifier: GPL-2.0-or-later
//! The batches of a run's measured time: they change nothing of the run, and make up the whole.

use perch_policy::Era;
use proptest::prelude::*;

use crate::common::{config, machine, scenario, workload};

/// A workload of each basis that has batches, and the index of its score that is a rate.
const LOADS: [(&str, usize); 4] = [
    ("tbench:n=8", 0),
    ("sysbench:threads=16", 0),
    ("schbench:messengers=1,workers=8", 5),
    ("ffmpeg:cpus_per_instance=8", 0),
];

proptest! {
    #![proptest_config(config(12))]

    #[test]
    fn batches_are_the_run_in_parts(load in 0..LOADS.len(), parts in 1..40u32, seed: u64) {
        let (spec, rate) = LOADS[load];
        let machine = machine("kunpeng920");
        let mut scenario = scenario(&machine, Era::V7_2, workload(&machine, spec), [3, 61]);
        scenario.seed = seed;
        let whole = scenario.run().unwrap();
        let (outcome, batches) = scenario.run_in_batches(parts).unwrap();
        prop_assert_eq!(&whole, &outcome);
        prop_assert_eq!(batches.len(), parts as usize);
        let rates = batches.iter().map(|batch| batch.scores[rate].unwrap());
        let mean = rates.sum::<f64>() / f64::from(parts);
        let expected = whole.scores[rate].value;
        // A part's length is rounded to a nanosecond, which is a millionth of it.
        prop_assert!((mean - expected).abs() <= 1e-5 * expected, "{} {}", mean, expected);
        for batch in &batches {
            prop_assert_eq!(batch.scores.len(), whole.scores.len());
            let within = |value: Option<f64>, high: f64| value.is_none_or(|v| v >= 0.0 && v <= high);
            prop_assert!(within(batch.kernel_pct, 100.0));
            prop_assert!(within(batch.latency_us, whole.metrics.max_latency_ns as f64 / 1e3));
        }
    }
}

/// Nobody wakes up in a part of 20 µs of a task that sleeps for milliseconds: it has no latency, which
/// is not a latency of 0.
#[test]
fn a_part_without_a_wake_up_has_no_latency() {
    let machine = machine("kunpeng920");
    let load = workload(&machine, "schbench:messengers=1,workers=1");
    let scenario = scenario(&machine, Era::V7_2, load, [1, 100]);
    let (_, batches) = scenario.run_in_batches(5000).unwrap();
    let without = batches.iter().filter(|batch| batch.latency_us.is_none());
    assert!((1..batches.len()).contains(&without.count()));
    let without = batches.iter().filter(|batch| batch.scores[..4] == [None; 4]);
    assert!((1..batches.len()).contains(&without.count()));
}

#[test]
fn a_workload_that_is_judged_by_its_time_has_no_batches() {
    let machine = machine("kunpeng920");
    let load = workload(&machine, "hackbench:groups=1,loops=20");
    let scenario = scenario(&machine, Era::V7_2, load, [0, 1000]);
    let (outcome, batches) = scenario.run_in_batches(20).unwrap();
    assert_eq!(outcome, scenario.run().unwrap());
    assert!(batches.is_empty());
}

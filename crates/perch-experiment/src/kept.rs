// SPDX-License-Identifier: GPL-2.0-or-later
//! The results that are kept of an arm's repetitions: every score, and sums of everything else.

use perch_sim::{Batch, Outcome};

use crate::compare::Rates;
use crate::contention::LineSums;
use crate::tally::Tally;
use crate::transient::Course;

/// A score of an arm.
#[derive(Default)]
pub(crate) struct ScoreKept {
    /// Its values, one a repetition.
    pub values: Vec<f64>,
    course: Course,
}

impl ScoreKept {
    /// Returns the mean over the repetitions in each batch of the measured time.
    pub fn course(&self) -> Vec<Option<f64>> {
        self.course.means()
    }

    /// See [`Course::transient`].
    pub fn transient(&self) -> Option<f64> {
        self.course.transient()
    }
}

/// The scores and sums of an arm's repetitions. But for the scores, the size does not depend on the
/// number of repetitions.
#[derive(Default)]
pub(crate) struct ArmKept {
    /// The workload's scores; after them the mean time from wake-up to running, microseconds, and
    /// the kernel's share of the busy time, percent.
    pub scores: Vec<ScoreKept>,
    pub rates: Rates,
    pub tally: Tally,
    pub lines: LineSums,
    /// Events of the measured time.
    pub events: u64,
}

impl ArmKept {
    /// Adds the arm's next repetition, and the batches of its measured time.
    pub fn add(&mut self, outcome: &Outcome, batches: &[Batch]) {
        let metrics = &outcome.metrics;
        // Without a wake-up there is none: 0 would be the best of all.
        let latency_us = match metrics.latencies {
            0 => f64::NAN,
            latencies => metrics.latency_ns as f64 / latencies as f64 / 1e3,
        };
        let values = outcome.scores.iter().map(|score| score.value);
        let values = values.chain([latency_us, metrics.kernel_pct()]);
        let of_batch = |batch: &Batch, index: usize| {
            let after = [batch.latency_us, batch.kernel_pct];
            *batch.scores.iter().chain(&after).nth(index).expect("as many figures as of the whole")
        };
        self.scores.resize_with(outcome.scores.len() + 2, ScoreKept::default);
        for (index, (score, value)) in self.scores.iter_mut().zip(values).enumerate() {
            score.values.push(value);
            let course: Vec<_> = (batches.iter()).map(|batch| of_batch(batch, index)).collect();
            score.course.add(&course);
        }
        self.rates.add(metrics);
        self.tally.add(metrics);
        self.lines.add(metrics.c2c.as_deref(), metrics.kernel_pct());
        self.events += metrics.events;
    }

    /// Returns the number of values that are kept, one a repetition each.
    #[cfg(test)]
    pub fn values(&self) -> usize {
        self.scores.iter().map(|score| score.values.len()).sum()
    }

    /// Returns the number of sums that are kept.
    #[cfg(test)]
    pub fn sums(&self) -> usize {
        self.rates.len()
    }
}

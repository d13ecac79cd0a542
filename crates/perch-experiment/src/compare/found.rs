// SPDX-License-Identifier: GPL-2.0-or-later
//! The results that are kept of an arm's repetitions: every score, and sums of everything else.

use perch_sim::Outcome;

use super::counts::Rates;
use crate::contention::LineSums;
use crate::tally::Tally;

/// The scores and sums of an arm's repetitions. But for the scores, the size does not depend on the
/// number of repetitions.
#[derive(Default)]
pub(super) struct ArmFound {
    /// The values of each of the workload's scores, one a repetition.
    pub scores: Vec<Vec<f64>>,
    /// The mean time from wake-up to running, microseconds, one a repetition.
    pub latency_us: Vec<f64>,
    /// The kernel's share of the busy time, percent, one a repetition.
    pub kernel_pct: Vec<f64>,
    pub rates: Rates,
    pub tally: Tally,
    pub lines: LineSums,
}

impl ArmFound {
    /// Adds the arm's next repetition.
    pub fn add(&mut self, outcome: &Outcome) {
        let metrics = &outcome.metrics;
        self.scores.resize_with(outcome.scores.len(), Vec::new);
        let values = outcome.scores.iter().map(|score| score.value);
        self.scores
            .iter_mut()
            .zip(values)
            .for_each(|(kept, value)| kept.push(value));
        let latency_us = metrics.latency_ns as f64 / metrics.latencies.max(1) as f64 / 1e3;
        self.latency_us.push(latency_us);
        self.kernel_pct.push(metrics.kernel_pct());
        self.rates.add(metrics);
        self.tally.add(metrics);
        self.lines.add(metrics.c2c.as_deref(), metrics.kernel_pct());
    }

    /// Returns the number of values that are kept, one a repetition each.
    #[cfg(test)]
    pub fn values(&self) -> usize {
        let scores: usize = self.scores.iter().map(Vec::len).sum();
        scores + self.latency_us.len() + self.kernel_pct.len()
    }

    /// Returns the number of sums that are kept.
    #[cfg(test)]
    pub fn sums(&self) -> usize {
        self.rates.len()
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The counts of simulations beside their scores, by load and arm: how long wake-ups took, why CPUs
//! were chosen, how far tasks went, and which CPUs ran them.

use perch_policy::Reason;
use perch_sim::{Latencies, Metrics};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arm::Arm;
use crate::compare::{CountRow, distances, occurred};
use crate::json::null_is_nan;
use crate::run::LoadRun;

/// The time that woken tasks waited until they ran, in one arm, over all repetitions together.
/// Percentiles are the upper ends of the histogram's buckets: a percentile is never less than the
/// true one, and at most a 32nd more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WakeLatency {
    /// The arm's name.
    pub arm: String,
    /// Wake-ups of tasks that ran in the measured time.
    pub wakeups: u64,
    /// The mean in microseconds, exact; null in JSON without a wake-up, as are all the fields
    /// below.
    #[serde(deserialize_with = "null_is_nan")]
    #[schemars(with = "Option<f64>")]
    pub mean_us: f64,
    /// Microseconds that half of the wake-ups did not exceed.
    #[serde(deserialize_with = "null_is_nan")]
    #[schemars(with = "Option<f64>")]
    pub p50_us: f64,
    /// Microseconds that 90 % of the wake-ups did not exceed.
    #[serde(deserialize_with = "null_is_nan")]
    #[schemars(with = "Option<f64>")]
    pub p90_us: f64,
    /// Microseconds that 99 % of the wake-ups did not exceed.
    #[serde(deserialize_with = "null_is_nan")]
    #[schemars(with = "Option<f64>")]
    pub p99_us: f64,
    /// Microseconds that 99.9 % of the wake-ups did not exceed.
    #[serde(deserialize_with = "null_is_nan")]
    #[schemars(with = "Option<f64>")]
    pub p99_9_us: f64,
    /// The longest wait in microseconds, exact.
    #[serde(deserialize_with = "null_is_nan")]
    #[schemars(with = "Option<f64>")]
    pub max_us: f64,
    /// The histogram: the longest latency that a bucket takes, nanoseconds, and the number of
    /// wake-ups in the bucket; the shortest comes first, and empty buckets are left out. An
    /// experiment has the histogram where a table is one load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<[u64; 2]>,
}

impl WakeLatency {
    /// Returns the percentiles by name, and the longest wait, in microseconds.
    pub fn percentiles(&self) -> [(&'static str, f64); 5] {
        [
            ("50th", self.p50_us),
            ("90th", self.p90_us),
            ("99th", self.p99_us),
            ("99.9th", self.p99_9_us),
            ("max", self.max_us),
        ]
    }
}

/// The busy time and the decisions of the machine's CPUs in one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmCpus {
    /// The arm's name.
    pub arm: String,
    /// The share of the measured time that each CPU was not idle, percent to a hundredth, by CPU
    /// number, over all repetitions together.
    pub busy_pct: Vec<f64>,
    /// The number of decisions for each CPU, per simulated second; only a comparison has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chosen_per_second: Vec<f64>,
}

/// The counts of one load of an experiment. Lists by arm are in the order of the report's arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadFound {
    /// The benchmark.
    pub benchmark: String,
    /// The place, as a cell has it.
    #[serde(rename = "where")]
    pub place: String,
    /// The row, where each row is a load of its own; the scores of one row share a load.
    pub row: Option<String>,
    /// The name of the machine that was simulated.
    pub machine: String,
    /// The workload, in the syntax of `perch compare`.
    pub workload: String,
    /// The latencies of wake-ups, by arm.
    pub latency: Vec<WakeLatency>,
    /// The reasons for which CPUs were chosen; reasons that never occurred are left out.
    pub decisions: Vec<CountRow>,
    /// The distances from a woken task's previous CPU to the chosen one; distances that never
    /// occurred are left out.
    pub migrations: Vec<CountRow>,
    /// The CPUs' busy time, by arm.
    pub cpus: Vec<ArmCpus>,
}

/// Sums over an arm's repetitions. All sums are integers, so the order of the additions does not
/// matter.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    latency: Latencies,
    latency_ns: u128,
    max_latency_ns: u64,
    by_reason: Vec<u64>,
    migrations: Vec<u64>,
    busy: Vec<u64>,
    chosen: Vec<u64>,
    simulated_ns: u64,
}

impl Tally {
    pub fn add(&mut self, metrics: &Metrics) {
        let add = |sums: &mut Vec<u64>, more: &[u64]| {
            sums.resize(sums.len().max(more.len()), 0);
            sums.iter_mut().zip(more).for_each(|(sum, n)| *sum += n);
        };
        self.latency.add(&metrics.wake_latency);
        self.latency_ns += u128::from(metrics.latency_ns);
        self.max_latency_ns = self.max_latency_ns.max(metrics.max_latency_ns);
        add(&mut self.by_reason, &metrics.by_reason);
        add(&mut self.migrations, &metrics.migrations);
        add(&mut self.busy, &metrics.busy_by_cpu);
        add(&mut self.chosen, &metrics.chosen);
        self.simulated_ns += metrics.simulated_ns;
    }

    pub fn latency(&self, arm: &str, with_buckets: bool) -> WakeLatency {
        let wakeups = self.latency.total();
        let us = |ns: f64| if wakeups == 0 { f64::NAN } else { ns / 1e3 };
        let at = |share| us(self.latency.quantile_ns(share).min(self.max_latency_ns) as f64);
        let buckets = self.latency.buckets().map(|(ns, count)| [ns, count]);
        WakeLatency {
            arm: arm.to_string(),
            wakeups,
            mean_us: us(self.latency_ns as f64 / wakeups as f64),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p99_9_us: at(0.999),
            max_us: us(self.max_latency_ns as f64),
            buckets: buckets.filter(|_| with_buckets).collect(),
        }
    }

    pub fn cpus(&self, arm: &str, with_chosen: bool) -> ArmCpus {
        let pct = |busy: &u64| 100.0 * *busy as f64 / self.simulated_ns.max(1) as f64;
        let chosen = (0..self.busy.len())
            .filter(|_| with_chosen)
            .map(|cpu| self.per_second(self.chosen.get(cpu).copied().unwrap_or(0)));
        ArmCpus {
            arm: arm.to_string(),
            busy_pct: (self.busy.iter()).map(|busy| (pct(busy) * 100.0).round() / 100.0).collect(),
            chosen_per_second: chosen.collect(),
        }
    }

    fn per_second(&self, count: u64) -> f64 {
        count as f64 * 1e9 / self.simulated_ns.max(1) as f64
    }
}

impl LoadFound {
    /// Returns what the simulations of a load came to.
    pub(crate) fn new(found: &LoadRun) -> LoadFound {
        let load = found.load;
        let by_arm = || found.arms.iter().copied().zip(found.kept.iter().map(|kept| &kept.tally));
        // Of an arm that does not count something `of` returns none.
        let rates = |of: &dyn Fn(&Arm, &Tally) -> Option<u64>| {
            by_arm().map(|(arm, tally)| Some(tally.per_second(of(arm, tally)?))).collect()
        };
        let count = |counts: &[u64], index: usize| counts.get(index).copied().unwrap_or(0);
        let reasons = Reason::ALL.iter().map(|reason| reason.name());
        LoadFound {
            benchmark: load.benchmark.clone(),
            place: load.place.clone(),
            row: load.row.clone(),
            machine: load.machine.name.clone(),
            workload: load.workload.clone(),
            latency: by_arm()
                .map(|(arm, tally)| tally.latency(&arm.name, load.row.is_none()))
                .collect(),
            // An outside scheduler gives no reasons.
            decisions: occurred(reasons, |index| {
                rates(&|arm, tally| arm.scheduler.is_none().then(|| count(&tally.by_reason, index)))
            }),
            migrations: occurred(distances(), |index| {
                rates(&|_, tally| Some(count(&tally.migrations, index)))
            }),
            cpus: by_arm().map(|(arm, tally)| tally.cpus(&arm.name, false)).collect(),
        }
    }
}

#[cfg(test)]
mod tests;

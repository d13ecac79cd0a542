// SPDX-License-Identifier: GPL-2.0-or-later
//! The counts of simulations beside their scores, by load and arm: how long wake-ups took, why CPUs
//! were chosen, how far tasks went, and which CPUs ran them.

use std::sync::Mutex;

use perch_policy::Reason;
use perch_sim::{Latencies, Metrics};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arm::Arm;
use crate::compare::{CountRow, distances, occurred};
use crate::json::null_is_nan;
use crate::model::{Experiment, Load};

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

/// Calls [`occurred`] on tallies, of which `of` returns none where an arm does not count this.
fn rows<'a, 'b>(
    tallies: &'b [(&Arm, Tally)],
    names: impl IntoIterator<Item = &'a str>,
    of: impl Fn(&Arm, &'b Tally) -> Option<&'b [u64]>,
) -> Vec<CountRow> {
    occurred(names, |index| {
        let rates = tallies.iter().map(|(arm, tally)| {
            let count = of(arm, tally)?.get(index).copied();
            Some(tally.per_second(count.unwrap_or(0)))
        });
        rates.collect()
    })
}

/// The tallies of an experiment's loads and arms. The memory that they take does not depend on the
/// repetitions.
pub(crate) struct Tallies<'a> {
    experiment: &'a Experiment,
    /// The tallies by load, then by arm of the experiment.
    all: Vec<Vec<Mutex<Option<Box<Tally>>>>>,
}

impl<'a> Tallies<'a> {
    pub fn new(experiment: &'a Experiment) -> Tallies<'a> {
        let arms = || experiment.arms.iter().map(|_| Mutex::default()).collect();
        Tallies { experiment, all: experiment.loads.iter().map(|_| arms()).collect() }
    }

    /// Adds one simulation of a load and an arm of the experiment.
    pub fn add(&self, load: &Load, arm: &Arm, metrics: &Metrics) {
        let load = (self.experiment.loads.iter()).position(|other| std::ptr::eq(other, load));
        let arm = (self.experiment.arms.iter()).position(|other| other.name == arm.name);
        let (Some(load), Some(arm)) = (load, arm) else {
            return;
        };
        let tally = self.all[load][arm].lock();
        let mut tally = tally.expect("no worker panics while it holds the lock");
        tally.get_or_insert_default().add(metrics);
    }

    /// Forgets the simulations of a load, which is simulated anew.
    pub fn forget(&self, load: &Load) {
        let loads = self.experiment.loads.iter().zip(&self.all);
        for (_, arms) in loads.filter(|(other, _)| std::ptr::eq(*other, load)) {
            for tally in arms {
                *tally.lock().expect("no worker panics while it holds the lock") = None;
            }
        }
    }

    /// Returns the counts of every load that ran, in the order of the tables.
    pub fn found(self) -> Vec<LoadFound> {
        let of_load = |(load, arms): (&Load, Vec<Mutex<Option<Box<Tally>>>>)| {
            let arms = self.experiment.arms.iter().zip(arms);
            let ran = arms.filter_map(|(arm, tally)| {
                let tally = tally.into_inner().expect("the workers are gone");
                tally.map(|tally| (arm, *tally))
            });
            let ran: Vec<(&Arm, Tally)> = ran.collect();
            let by_arm = || ran.iter().map(|(arm, tally)| (arm.name.as_str(), tally));
            let reasons = Reason::ALL.iter().map(|reason| reason.name());
            (!ran.is_empty()).then(|| LoadFound {
                benchmark: load.benchmark.clone(),
                place: load.place.clone(),
                row: load.row.clone(),
                machine: load.machine.name.clone(),
                workload: load.workload.clone(),
                latency: by_arm()
                    .map(|(arm, tally)| tally.latency(arm, load.row.is_none()))
                    .collect(),
                // An outside scheduler gives no reasons.
                decisions: rows(&ran, reasons, |arm, tally| {
                    arm.scheduler.is_none().then_some(tally.by_reason.as_slice())
                }),
                migrations: rows(&ran, distances(), |_, tally| Some(tally.migrations.as_slice())),
                cpus: by_arm().map(|(arm, tally)| tally.cpus(arm, false)).collect(),
            })
        };
        let loads = self.experiment.loads.iter().zip(self.all);
        loads.filter_map(of_load).collect()
    }
}

#[cfg(test)]
mod tests;

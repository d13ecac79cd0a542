// SPDX-License-Identifier: GPL-2.0-or-later
//! The events that a comparison counts, per simulated second.

use perch_machine::Distance;
use perch_sim::{GuestMetrics, Metrics};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The names of all distances, nearest first.
pub(crate) fn distances() -> [&'static str; Distance::ALL.len()] {
    Distance::ALL.map(Distance::name)
}

/// The frequency of one event, per simulated second, or per second of a guest's clock, by arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountRow {
    /// The event's name.
    pub name: String,
    /// The number of times per simulated second, mean over the repetitions, by arm; none where an arm's
    /// scheduler does not count the event.
    pub per_second: Vec<Option<f64>>,
}

/// Makes a row for each name that occurred in any arm; `rates` returns the rates of the name at the
/// given index.
pub(crate) fn occurred<'a>(
    names: impl IntoIterator<Item = &'a str>,
    rates: impl Fn(usize) -> Vec<Option<f64>>,
) -> Vec<CountRow> {
    let rows = names
        .into_iter()
        .enumerate()
        .map(|(index, name)| CountRow { name: name.to_string(), per_second: rates(index) });
    rows.filter(CountRow::occurred).collect()
}

impl CountRow {
    /// Returns true if the event occurred in any arm, as far as it is counted.
    pub fn occurred(&self) -> bool {
        let mut rates = self.per_second.iter().flatten();
        rates.any(|rate| *rate > 0.0)
    }
}

/// The rates of an arm.
#[derive(Clone, Copy)]
pub(super) struct ArmRates<'a> {
    pub rates: &'a Rates,
    /// True where another scheduler has the place of the kernel's. It tells which CPU it chose, and
    /// neither why nor what it looked at.
    pub is_outside: bool,
}

/// The events of [`TOTALS`] that no outside scheduler reports: its scans, and the tasks that it preempts
/// itself.
const OF_THE_KERNEL: [&str; 2] = ["CPUs examined", "preemptions"];

/// The sums of every event's rate over an arm's repetitions. They are added up in the order of the
/// repetitions, since the last bit of a sum depends on the order.
#[derive(Default)]
pub(crate) struct Rates {
    repetitions: usize,
    pub decisions: Vec<f64>,
    pub chosen: Vec<f64>,
    pub cache: Vec<f64>,
    pub wake_distance: Vec<f64>,
    pub migrations: Vec<f64>,
    pub balanced: Vec<f64>,
    guests: Vec<f64>,
    totals: Vec<f64>,
    /// True where a vCPU of a virtual machine ran.
    has_guests: bool,
}

impl Rates {
    /// Adds a repetition.
    pub fn add(&mut self, metrics: &Metrics) {
        let seconds = metrics.simulated_ns.max(1) as f64;
        let add = |sums: &mut Vec<f64>, counts: &[u64]| {
            sums.resize(sums.len().max(counts.len()), 0.0);
            let rates = counts.iter().map(|count| *count as f64 * 1e9 / seconds);
            sums.iter_mut().zip(rates).for_each(|(sum, rate)| *sum += rate);
        };
        add(&mut self.decisions, &metrics.by_reason);
        add(&mut self.chosen, &metrics.chosen);
        add(&mut self.cache, &metrics.by_cache_step[1..]);
        add(&mut self.wake_distance, &metrics.wake_distance);
        add(&mut self.migrations, &metrics.migrations);
        add(&mut self.balanced, &metrics.balanced);
        add(&mut self.guests, &GUESTS.map(|(_, of)| of(&metrics.guest)));
        add(&mut self.totals, &TOTALS.map(|(_, of)| of(metrics)));
        self.has_guests |= metrics.guest.vcpus_ran_ns > 0;
        self.repetitions += 1;
    }

    /// Returns the number of sums but for those by CPU, which there is one of for each CPU of the
    /// machine at most.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        let all = [
            &self.decisions,
            &self.cache,
            &self.wake_distance,
            &self.migrations,
            &self.balanced,
            &self.guests,
            &self.totals,
        ];
        all.iter().map(|sums| sums.len()).sum()
    }

    fn mean(&self, sums: &[f64], index: usize) -> f64 {
        sums.get(index).copied().unwrap_or(0.0) / self.repetitions as f64
    }
}

/// Calls [`occurred`] on the rates of each arm.
pub(super) fn counts<'a>(
    by_arm: &[ArmRates],
    names: impl IntoIterator<Item = &'a str>,
    of: impl Fn(&Rates) -> &[f64],
) -> Vec<CountRow> {
    let mean = |arm: &ArmRates, index| Some(arm.rates.mean(of(arm.rates), index));
    occurred(names, |index| by_arm.iter().map(|arm| mean(arm, index)).collect())
}

/// Calls [`occurred`] on the rates of each arm, for what the policy says of its decisions.
pub(super) fn said_by_policy<'a>(
    by_arm: &[ArmRates],
    names: impl IntoIterator<Item = &'a str>,
    of: impl Fn(&Rates) -> &[f64],
) -> Vec<CountRow> {
    let mut rows = counts(by_arm, names, of);
    for row in &mut rows {
        let rates = row.per_second.iter_mut().zip(by_arm);
        rates.filter(|(_, arm)| arm.is_outside).for_each(|(rate, _)| *rate = None);
    }
    rows.retain(CountRow::occurred);
    rows
}

/// Makes a row for each CPU that was chosen, for a workload with groups: the rows show whether the
/// groups herd.
pub(super) fn chosen(grouped: bool, cpus: usize, by_arm: &[ArmRates]) -> Vec<CountRow> {
    if !grouped {
        return Vec::new();
    }
    let names: Vec<String> = (0..cpus).map(|cpu| format!("cpu {cpu}")).collect();
    counts(by_arm, names.iter().map(String::as_str), |rates| &rates.chosen)
}

type Named<T> = (&'static str, fn(&T) -> u64);

const GUESTS: [Named<GuestMetrics>; 8] = [
    ("vCPUs ran, ms", |g| g.vcpus_ran_ns / 1_000_000),
    ("vCPUs waited, ms", |g| g.vcpus_waited_ns / 1_000_000),
    ("vCPUs spun, ms", |g| g.spun_ns / 1_000_000),
    ("exits and interrupts, ms", |g| g.overhead_ns / 1_000_000),
    ("wake-ups inside", |g| g.wakeups),
    ("interrupts between vCPUs", |g| g.interrupts),
    ("halts of vCPUs", |g| g.halts),
    ("packets", |g| g.packets),
];

const TOTALS: [Named<Metrics>; 7] = [
    ("wake-ups", |metrics| metrics.wakeups),
    ("wake-ups onto a busy CPU", |metrics| metrics.chosen_busy),
    ("CPUs examined", |metrics| metrics.examined),
    ("context switches", |metrics| metrics.context_switches),
    ("preemptions", |metrics| metrics.preemptions),
    ("changes of LLC", |metrics| metrics.llc_changes),
    ("bounces (back within 50 ms)", |metrics| metrics.bounces),
];

/// Makes a row for each name, whether it occurred or not.
fn all<T>(by_arm: &[ArmRates], names: &[Named<T>], of: impl Fn(&Rates) -> &[f64]) -> Vec<CountRow> {
    let row = |(index, (name, _)): (usize, &Named<T>)| {
        let rate = |arm: &ArmRates| {
            let is_counted = !(arm.is_outside && OF_THE_KERNEL.contains(name));
            is_counted.then(|| arm.rates.mean(of(arm.rates), index))
        };
        CountRow { name: name.to_string(), per_second: by_arm.iter().map(rate).collect() }
    };
    names.iter().enumerate().map(row).collect()
}

/// Makes the rows of virtual machines, if any of them had a vCPU that ran.
pub(super) fn guests(by_arm: &[ArmRates]) -> Vec<CountRow> {
    if by_arm.iter().any(|arm| arm.rates.has_guests) {
        all(by_arm, &GUESTS, |rates| &rates.guests)
    } else {
        Vec::new()
    }
}

pub(super) fn totals(by_arm: &[ArmRates]) -> Vec<CountRow> {
    all(by_arm, &TOTALS, |rates| &rates.totals)
}

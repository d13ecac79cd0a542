// SPDX-License-Identifier: GPL-2.0-or-later
//! The events that a comparison counts, per simulated second.

use perch_machine::{Distance, Machine};
use perch_sim::workload::Workload;
use perch_sim::{GuestMetrics, Metrics, Outcome};
use serde::{Deserialize, Serialize};

use crate::stats::mean;

/// The names of all distances, nearest first.
pub(crate) fn distances() -> [&'static str; Distance::ALL.len()] {
    Distance::ALL.map(Distance::name)
}

/// The frequency of one event, per simulated second, by arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountRow {
    /// The event's name.
    pub name: String,
    /// The number of times per simulated second, mean over the repetitions, by arm.
    pub per_second: Vec<f64>,
}

/// Makes a row for each name that occurred in any arm; `rates` returns the rates of the name at the
/// given index.
pub(crate) fn occurred<'a>(
    names: impl IntoIterator<Item = &'a str>,
    rates: impl Fn(usize) -> Vec<f64>,
) -> Vec<CountRow> {
    let rows = names.into_iter().enumerate().map(|(index, name)| CountRow {
        name: name.to_string(),
        per_second: rates(index),
    });
    rows.filter(|row| row.per_second.iter().any(|rate| *rate > 0.0))
        .collect()
}

/// Calls [`occurred`] on outcomes.
pub(super) fn counts<'a>(
    by_arm: &[&[Outcome]],
    names: impl IntoIterator<Item = &'a str>,
    of: impl Fn(&Metrics) -> &[u64],
) -> Vec<CountRow> {
    occurred(names, |index| {
        rates(by_arm, |metrics| {
            of(metrics).get(index).copied().unwrap_or(0)
        })
    })
}

/// Makes a row for each CPU that was chosen, for a workload with groups: the rows show whether the
/// groups herd.
pub(super) fn chosen(workload: &str, machine: &Machine, by_arm: &[&[Outcome]]) -> Vec<CountRow> {
    let grouped = Workload::parse(workload, machine).is_ok_and(|w| !w.groups.is_empty());
    if !grouped {
        return Vec::new();
    }
    let names: Vec<String> = (0..machine.cpus.len())
        .map(|cpu| format!("cpu {cpu}"))
        .collect();
    counts(by_arm, names.iter().map(String::as_str), |m| &m.chosen)
}

/// Makes the rows of virtual machines, if any of them had a vCPU that ran.
pub(super) fn guests(by_arm: &[&[Outcome]]) -> Vec<CountRow> {
    let row = |name: &str, of: &dyn Fn(&GuestMetrics) -> u64| CountRow {
        name: name.to_string(),
        per_second: rates(by_arm, |m| of(&m.guest)),
    };
    let mut outcomes = by_arm.iter().flat_map(|outcomes| outcomes.iter());
    if outcomes.all(|outcome| outcome.metrics.guest.vcpus_ran_ns == 0) {
        return Vec::new();
    }
    vec![
        row("vCPUs ran, ms", &|g| g.vcpus_ran_ns / 1_000_000),
        row("vCPUs waited, ms", &|g| g.vcpus_waited_ns / 1_000_000),
        row("exits and interrupts, ms", &|g| g.overhead_ns / 1_000_000),
        row("wake-ups inside", &|g| g.wakeups),
        row("interrupts between vCPUs", &|g| g.interrupts),
        row("halts of vCPUs", &|g| g.halts),
        row("packets", &|g| g.packets),
    ]
}

pub(super) fn totals(by_arm: &[&[Outcome]]) -> Vec<CountRow> {
    let row = |name: &str, of: &dyn Fn(&Metrics) -> u64| CountRow {
        name: name.to_string(),
        per_second: rates(by_arm, of),
    };
    vec![
        row("wake-ups", &|metrics| metrics.wakeups),
        row("wake-ups onto a busy CPU", &|metrics| metrics.chosen_busy),
        row("CPUs examined", &|metrics| metrics.examined),
        row("context switches", &|metrics| metrics.context_switches),
        row("preemptions", &|metrics| metrics.preemptions),
        row("changes of LLC", &|metrics| metrics.llc_changes),
        row("bounces (back within 50 ms)", &|metrics| metrics.bounces),
    ]
}

pub(super) fn rates(by_arm: &[&[Outcome]], of: impl Fn(&Metrics) -> u64) -> Vec<f64> {
    let rate = |metrics: &Metrics| of(metrics) as f64 * 1e9 / metrics.simulated_ns.max(1) as f64;
    by_arm
        .iter()
        .map(|outcomes| {
            let rates: Vec<f64> = outcomes
                .iter()
                .map(|outcome| rate(&outcome.metrics))
                .collect();
            mean(&rates)
        })
        .collect()
}

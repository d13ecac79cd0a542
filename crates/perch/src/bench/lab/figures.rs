// SPDX-License-Identifier: GPL-2.0-or-later
//! Turns a guest's findings into instructions per callback and per wake-up.

use perch_scheduler::cost::{Cost, Costs};
use serde::Serialize;

use super::collect::Found;

/// The callbacks that have a column of their own.
pub const COLUMNS: [&str; 5] = ["select_cpu", "enqueue", "dispatch", "running", "stopping"];

/// Callbacks for tasks and groups that come, go or change; a wake-up calls none of them.
const ELSEWHERE: [&str; 13] = [
    "init",
    "exit",
    "init_task",
    "exit_task",
    "enable",
    "disable",
    "set_cpumask",
    "set_weight",
    "cgroup_init",
    "cgroup_exit",
    "cgroup_prep_move",
    "cgroup_move",
    "cgroup_set_weight",
];

/// All findings.
#[derive(Debug, Default, Serialize)]
pub struct Result {
    /// One row for each scheduler, size, workload and turn.
    pub rows: Vec<Row>,
    /// The reasons why a scheduler has no rows.
    pub failures: Vec<String>,
}

/// One measurement.
#[derive(Debug, Serialize)]
pub struct Row {
    pub scheduler: String,
    pub cpus: usize,
    pub kernel: String,
    #[serde(flatten)]
    pub found: Found,
}

/// The part of the result to which a program's cost belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// One of [`COLUMNS`].
    Column(usize),
    /// Every other callback for wake-ups and ticks.
    Rest,
    /// A callback for forks, exits and changes of a task.
    Elsewhere,
}

/// The part of a program.
pub fn part(cost: &Cost) -> Part {
    let Some(callback) = &cost.callback else {
        return Part::Rest;
    };
    match COLUMNS.iter().position(|name| name == callback) {
        Some(column) => Part::Column(column),
        None if ELSEWHERE.contains(&callback.as_str()) => Part::Elsewhere,
        None => Part::Rest,
    }
}

/// Instructions and runs of some programs in one measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    pub runs: u64,
    pub ns: f64,
    pub dropped: u64,
}

impl Total {
    fn add(&mut self, cost: &Cost) {
        self.runs += cost.runs;
        self.ns += cost.runs as f64 * cost.mean_ns;
        self.dropped += cost.dropped;
    }

    /// Instructions of one run on average; 0 without runs.
    pub fn each(&self) -> f64 {
        self.ns / self.runs.max(1) as f64
    }
}

/// Sums over the programs of one measurement.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    pub columns: [Total; COLUMNS.len()],
    pub rest: Total,
    pub elsewhere: Total,
    pub wakeups: u64,
}

impl Sums {
    /// The sums over the programs in `costs`. Programs of other types are not measured run by run;
    /// they come from `means`, with as many runs for each wake-up as they had there.
    pub fn of(costs: &Costs, means: &Costs) -> Sums {
        let mut sums = Sums {
            wakeups: costs.wakeups,
            ..Sums::default()
        };
        let others = means.programs.iter().filter(|cost| {
            let known = costs.programs.iter().any(|one| one.program == cost.program);
            cost.callback.is_none() && !known
        });
        let others: Vec<Cost> = others
            .map(|cost| Cost {
                runs: cost.runs * costs.wakeups / means.wakeups.max(1),
                ..cost.clone()
            })
            .collect();
        for cost in costs.programs.iter().chain(&others) {
            match part(cost) {
                Part::Column(at) => sums.columns[at].add(cost),
                Part::Rest => sums.rest.add(cost),
                Part::Elsewhere => sums.elsewhere.add(cost),
            }
        }
        sums
    }

    /// Instructions for each wake-up, of all programs that run for wake-ups and ticks.
    pub fn per_wakeup(&self) -> f64 {
        let columns: f64 = self.columns.iter().map(|total| total.ns).sum();
        (columns + self.rest.ns) / self.wakeups.max(1) as f64
    }

    /// The share of runs that were left out.
    pub fn dropped(&self) -> f64 {
        let parts = self.columns.iter().chain([&self.rest]);
        let (dropped, runs) = parts.fold((0, 0), |(dropped, runs), total| {
            (dropped + total.dropped, runs + total.runs)
        });
        dropped as f64 / runs.max(1) as f64
    }
}

/// The median of an odd number of values.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(callback: Option<&str>, runs: u64, mean_ns: f64) -> Cost {
        Cost {
            program: format!("x_{}", callback.unwrap_or("probe")),
            callback: callback.map(str::to_string),
            runs,
            mean_ns,
            quantiles_ns: None,
            dropped: runs / 10,
        }
    }

    #[test]
    fn a_wake_up_pays_for_all_but_forks() {
        let costs = Costs {
            wakeups: 100,
            programs: vec![
                cost(Some("select_cpu"), 100, 500.0),
                cost(Some("dispatch"), 200, 50.0),
                cost(Some("tick"), 10, 100.0),
                cost(Some("init_task"), 50, 1000.0),
            ],
        };
        let mut means = costs.clone();
        means.programs.push(cost(None, 100, 7.0));
        let sums = Sums::of(&costs, &means);
        assert_eq!(sums.columns[0].each(), 500.0);
        assert_eq!(sums.columns[2].each(), 50.0);
        assert_eq!((sums.rest.runs, sums.elsewhere.runs), (110, 50));
        assert_eq!(sums.per_wakeup(), 500.0 + 100.0 + 10.0 + 7.0);
        assert!((sums.dropped() - 0.1).abs() < 0.01);
        assert_eq!(sums.columns[1].each(), 0.0);
    }

    #[test]
    fn the_middle_of_three() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median(std::iter::empty()), 0.0);
    }
}

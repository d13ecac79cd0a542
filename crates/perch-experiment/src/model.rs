// SPDX-License-Identifier: GPL-2.0-or-later
//! An experiment in the form in which it is run: checked, and expanded into cells.

use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::Era;
use perch_sim::RootDomain;

use crate::arm::Arm;
use crate::line::PublishedLine;
use crate::published::Published;
use crate::statistic::Statistic;

/// The name of the arm that is compared with the published baseline column.
pub const BASELINE: &str = "baseline";
/// The name of the arm that is compared with the published patched column.
pub const PATCHED: &str = "patched";

/// The simulated time of a load, and the number of repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// The number of simulations per arm, at least 1, each with its own seed.
    pub repetitions: u32,
    /// Simulated time before anything is counted, in nanoseconds.
    pub warmup_ns: u64,
    /// Simulated time that is counted, in nanoseconds; at least 1 ms.
    pub measure_ns: u64,
}

impl Effort {
    /// The longest simulated time before anything is counted, and that is counted: an hour.
    pub const LONGEST_NS: u64 = 3_600 * 1_000_000_000;

    /// Returns true where nothing happens before it counts: some tools, schbench among them, count what
    /// their threads do from the start. Such a score has its transient in it, and is compared with a
    /// published one that has it too.
    pub fn counts_the_beginning(&self) -> bool {
        self.warmup_ns == 0
    }

    /// Returns the simulated time before anything is counted, in milliseconds.
    pub fn warmup_ms(&self) -> f64 {
        self.warmup_ns as f64 / 1e6
    }

    /// Returns the simulated time that is counted, in milliseconds.
    pub fn measure_ms(&self) -> f64 {
        self.measure_ns as f64 / 1e6
    }

    /// Returns the simulated time since the beginning of a run, in milliseconds, at which `part` of the
    /// measured time, 0 to 1, is over.
    pub(crate) fn moment_ms(&self, part: f64) -> f64 {
        self.warmup_ms() + part * self.measure_ms()
    }
}

/// One workload on one machine, which is the input of a simulation. A load serves one row, or,
/// where rows are statistics, all rows of a table.
#[derive(Clone, Debug)]
pub struct Load {
    /// The benchmark's name in the published tables.
    pub benchmark: String,
    /// The published tables' name for the set of CPUs to which the benchmark was pinned, or for the
    /// machine it ran on.
    pub place: String,
    /// The row, where the load serves one alone; none where the rows are statistics over its
    /// repetitions.
    pub row: Option<String>,
    /// The machine that the load runs on.
    pub machine: Arc<Machine>,
    /// The workload, in the syntax of `perch_sim::workload::Workload::parse`.
    pub workload: String,
    /// The scores that the load's cells show, at least one.
    pub scores: Vec<Wanted>,
    /// The load's simulated time, and the number of repetitions.
    pub effort: Effort,
}

/// A score that an experiment wants of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The score's name, for workloads that have several; without a name, the first score is meant.
    pub name: Option<String>,
    /// The unit in which cells show the score; the simulated score must have this unit too, unless
    /// the cells are relative.
    pub unit: String,
}

/// Rules for one cell, beside the rules for all, by which the cell is compared with its published
/// figures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Judging {
    /// The patched figure was published rounded: the simulated figure also passes if, rounded to a
    /// whole number, it is no further from the published one than this.
    pub within_rounded: Option<f64>,
    /// The published figures are relative to a baseline, 1 or 100, whose absolute value nobody
    /// knows: the simulated figures are then scaled to the same baseline.
    pub relative: bool,
}

/// The published columns of one cell on which costs were fitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// The names of the columns: `baseline`, `patched`.
    pub columns: Vec<String>,
    /// The cost that was fitted, and the reason for fitting it on this cell.
    pub why: String,
}

impl Load {
    /// Returns `benchmark`, `place` and, where the load serves one alone, `row`: the parts that the
    /// load's seeds depend on.
    pub(crate) fn parts(&self) -> Vec<&str> {
        let row = self.row.as_deref();
        [self.benchmark.as_str(), &self.place].into_iter().chain(row).collect()
    }

    /// Returns the parts joined by slashes, which is the load's name in errors.
    pub fn path(&self) -> String {
        self.parts().join("/")
    }
}

/// One row of one published table.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The benchmark's name in the published tables.
    pub benchmark: String,
    /// The set of CPUs to which the benchmark was pinned, or the machine it ran on.
    pub place: String,
    /// The row's name, for example `n=16` or `99th`.
    pub row: String,
    /// The load that is simulated for the cell: an index into [`Experiment::loads`].
    pub load: usize,
    /// The score of the load that the cell shows: an index into [`Load::scores`].
    pub score: usize,
    /// The statistic of the load's repetitions that the cell shows.
    pub statistic: Statistic,
    /// The figures measured on hardware.
    pub published: Published,
    /// The rules by which the simulated figures are compared with the published ones.
    pub judging: Judging,
    /// Set where costs were fitted on this cell, which is then never scored.
    pub calibration: Option<Calibration>,
}

impl Cell {
    /// Returns `benchmark/place/row`: the text that `--only` matches, and the cell's name in
    /// errors.
    pub fn path(&self) -> String {
        format!("{}/{}/{}", self.benchmark, self.place, self.row)
    }
}

/// Published tables, and how to simulate each of their cells.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The name that `perch experiment run` takes.
    pub name: String,
    /// One line of description for `perch experiment list`.
    pub title: String,
    /// The place where the figures were published.
    pub source: String,
    /// The stock kernel on which the figures were measured.
    pub era: Era,
    /// Ticks of the kernel per second.
    pub hz: u32,
    /// The layout of that kernel's root domain, in every arm.
    pub root_domain: RootDomain,
    /// The seed, unless the user gives one.
    pub seed: u64,
    /// The arms: `baseline`, `patched`, then further ones without published figures.
    pub arms: Vec<Arm>,
    /// The loads to simulate, in the order of the tables.
    pub loads: Vec<Load>,
    /// The cells, in the order of the tables.
    pub cells: Vec<Cell>,
    /// The published figures of a contended cache line.
    pub c2c: Option<PublishedLine>,
}

/// Returns the names of the machines of `loads`, each once, in their order.
pub fn machines<'a>(loads: impl IntoIterator<Item = &'a Load>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for load in loads {
        if !names.contains(&load.machine.name.as_str()) {
            names.push(&load.machine.name);
        }
    }
    names
}

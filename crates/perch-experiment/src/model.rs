// SPDX-License-Identifier: GPL-2.0-or-later
//! An experiment as it is run: checked, and expanded into cells.

use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{Era, Modes};
use perch_sim::RootDomain;

use crate::error::ExperimentError;
use crate::line::PublishedLine;
use crate::published::Published;
use crate::statistic::Statistic;

/// The name of the arm that the published baseline column is held against.
pub const BASELINE: &str = "baseline";
/// The name of the arm that the published patched column is held against.
pub const PATCHED: &str = "patched";

/// One setting of the mechanisms. Arms differ in nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// How tables call it.
    pub name: String,
    /// The modes of all mechanisms.
    pub modes: Modes,
}

impl Arm {
    /// Reads `NAME:MECHANISM=MODE,...`, as `--arm` takes it.
    ///
    /// # Errors
    /// A sentence that says what was expected.
    pub fn parse(text: &str) -> Result<Arm, ExperimentError> {
        let refuse =
            |reason: String| Err(ExperimentError::Argument(format!("arm `{text}`: {reason}")));
        let Some((name, modes)) = text.split_once(':') else {
            return refuse(
                "expected NAME:MECHANISM=MODE, for example near:cluster=perch".to_string(),
            );
        };
        if name.is_empty() {
            return refuse("the name before `:` is empty".to_string());
        }
        match modes.parse() {
            Ok(modes) => Ok(Arm {
                name: name.to_string(),
                modes,
            }),
            Err(error) => refuse(error.to_string()),
        }
    }
}

/// How long and how often a load is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Simulations per arm, at least 1, each with its own seed.
    pub repetitions: u32,
    /// Simulated time before anything is counted, in nanoseconds.
    pub warmup_ns: u64,
    /// Simulated time that is counted, in nanoseconds; at least 1 ms.
    pub measure_ns: u64,
}

/// One workload on one machine: what a simulation runs. It serves one row, or, where rows are
/// statistics, all those of a table.
#[derive(Clone, Debug)]
pub struct Load {
    /// The benchmark, as the published tables call it.
    pub benchmark: String,
    /// Where it was pinned, or the machine it ran on, as the published tables call it.
    pub place: String,
    /// The row that it serves alone; none where the rows are statistics over its repetitions.
    pub row: Option<String>,
    /// What it runs on.
    pub machine: Arc<Machine>,
    /// What `perch_sim::workload::Workload::parse` takes.
    pub workload: String,
    /// The scores that its cells show, at least one.
    pub scores: Vec<Wanted>,
    /// How long and how often.
    pub effort: Effort,
}

/// A score that a load is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its name, for workloads that have several; else the first.
    pub name: Option<String>,
    /// The unit that cells show it in, and that it must be in unless they are relative.
    pub unit: String,
}

/// How a cell is held against what was published, beside the rules for all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Judging {
    /// The patched figure was published rounded: it is also enough if the simulated one, rounded
    /// to a whole number, is no further from it than this.
    pub within_rounded: Option<f64>,
    /// The published figures are relative to a baseline, 1 or 100, whose absolute value nobody
    /// knows: the simulated ones are scaled to the same baseline then.
    pub relative: bool,
}

/// The published columns that costs were fitted on in one cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// `baseline`, `patched`.
    pub columns: Vec<String>,
    /// What was fitted, and why here.
    pub why: String,
}

impl Load {
    /// `benchmark`, `place` and, where it serves one alone, `row`: what its seeds depend on.
    pub(crate) fn parts(&self) -> Vec<&str> {
        let row = self.row.as_deref();
        [self.benchmark.as_str(), &self.place]
            .into_iter()
            .chain(row)
            .collect()
    }

    /// Its parts between slashes: what errors call it.
    pub fn path(&self) -> String {
        self.parts().join("/")
    }
}

/// One row of one published table.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The benchmark, as the published tables call it.
    pub benchmark: String,
    /// Where it was pinned, or the machine it ran on.
    pub place: String,
    /// The row, for example `n=16` or `99th`.
    pub row: String,
    /// What is simulated for it: an index into [`Experiment::loads`].
    pub load: usize,
    /// Which of the load's scores it shows: an index into [`Load::scores`].
    pub score: usize,
    /// What it shows of the load's repetitions.
    pub statistic: Statistic,
    /// What was measured on hardware.
    pub published: Published,
    /// How it is held against that.
    pub judging: Judging,
    /// Set where costs were fitted on this cell, which is then never scored.
    pub calibration: Option<Calibration>,
}

impl Cell {
    /// `benchmark/place/row`: what `--only` is matched with, and what errors call it.
    pub fn path(&self) -> String {
        format!("{}/{}/{}", self.benchmark, self.place, self.row)
    }
}

/// Published tables, and how to simulate each of their cells.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// What `perch experiment run` takes.
    pub name: String,
    /// One line for `perch experiment list`.
    pub title: String,
    /// Where the figures were published.
    pub source: String,
    /// The stock kernel they were measured on.
    pub era: Era,
    /// Ticks per second.
    pub hz: u32,
    /// How that kernel's root domain is laid out, in every arm.
    pub root_domain: RootDomain,
    /// The seed, unless the user gives one.
    pub seed: u64,
    /// `baseline`, `patched`, then further ones that nothing published is held against.
    pub arms: Vec<Arm>,
    /// What is simulated, in the order of the tables.
    pub loads: Vec<Load>,
    /// In the order of the tables.
    pub cells: Vec<Cell>,
    /// What was published of a contended cache line.
    pub c2c: Option<PublishedLine>,
}

/// The names of the machines of `loads`, each once, in their order.
pub fn machines<'a>(loads: impl IntoIterator<Item = &'a Load>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for load in loads {
        if !names.contains(&load.machine.name.as_str()) {
            names.push(&load.machine.name);
        }
    }
    names
}

// SPDX-License-Identifier: GPL-2.0-only
//! An experiment as it is run: checked, and expanded into cells.

use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{Era, Modes};

use crate::error::ExperimentError;
use crate::published::Published;

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

/// How long and how often a cell is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Simulations per arm, at least 1, each with its own seed.
    pub repetitions: u32,
    /// Simulated time before anything is counted, in nanoseconds.
    pub warmup_ns: u64,
    /// Simulated time that is counted, in nanoseconds; at least 1 ms.
    pub measure_ns: u64,
}

/// The published columns that costs were fitted on in one cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// `baseline`, `patched`.
    pub columns: Vec<String>,
    /// What was fitted, and why here.
    pub why: String,
}

/// One row of one published table.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The benchmark, as the published tables call it.
    pub benchmark: String,
    /// Where it was pinned.
    pub place: String,
    /// The row, for example `n=16`.
    pub row: String,
    /// The unit of its figures.
    pub unit: String,
    /// What `perch_sim::workload::Workload::parse` takes.
    pub workload: String,
    /// The score to read, for workloads that have several; else the first.
    pub score: Option<String>,
    /// How long and how often.
    pub effort: Effort,
    /// What was measured on hardware.
    pub published: Published,
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
    /// The machine they were measured on.
    pub machine: Arc<Machine>,
    /// The stock kernel they were measured on.
    pub era: Era,
    /// Ticks per second.
    pub hz: u32,
    /// The seed, unless the user gives one.
    pub seed: u64,
    /// `baseline`, `patched`, then further ones that nothing published is held against.
    pub arms: Vec<Arm>,
    /// In the order of the tables.
    pub cells: Vec<Cell>,
}

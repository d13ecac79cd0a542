// SPDX-License-Identifier: GPL-2.0-or-later
//! The result of an experiment, cell by cell, compared with the published figures. The field names
//! are the keys of the JSON that docs/formats.md describes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cell::CellReport;
use crate::fit::Fit;
use crate::line::LineFound;
use crate::run::LoadRun;
use crate::summary::Summary;
use crate::tally::LoadFound;
use crate::thoroughness::Thoroughness;

/// Every iteration behind one table whose rows are statistics, which shows the distribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Iterations {
    /// The benchmark.
    pub benchmark: String,
    /// The place, as in [`CellReport::place`].
    #[serde(rename = "where")]
    pub place: String,
    /// The name of the machine that was simulated.
    pub machine: String,
    /// The workload, in the syntax of `perch compare`.
    pub workload: String,
    /// The unit of the values.
    pub unit: String,
    /// True where more is better.
    pub higher_is_better: bool,
    /// The arms that were simulated, in the order of [`Report::arms`].
    pub arms: Vec<ArmIterations>,
}

/// One arm's iterations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmIterations {
    /// The arm's name.
    pub arm: String,
    /// The value of each repetition; repetitions of the same number share a seed in all arms.
    pub values: Vec<f64>,
}

impl Iterations {
    /// Returns none where each row is a workload of its own.
    pub(crate) fn of(found: &LoadRun) -> Option<Iterations> {
        let load = found.load;
        let arms = found.arms.iter().zip(&found.kept).map(|(arm, kept)| ArmIterations {
            arm: arm.name.clone(),
            values: kept.scores[0].values.clone(),
        });
        load.row.is_none().then(|| Iterations {
            benchmark: load.benchmark.clone(),
            place: load.place.clone(),
            machine: load.machine.name.clone(),
            workload: load.workload.clone(),
            unit: load.scores[0].unit.clone(),
            higher_is_better: found.described[0].higher_is_better,
            arms: arms.collect(),
        })
    }
}

/// The result of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// The experiment's name.
    pub experiment: String,
    /// The experiment's title.
    pub title: String,
    /// The place where the figures were published.
    pub source: String,
    /// The machine's name; where there are several machines, their names with commas.
    pub machine: String,
    /// The stock kernel.
    pub era: String,
    /// Ticks of the kernel per second.
    pub hz: u32,
    /// The layout of that kernel's root domain, where it differs from the stock one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_domain: Option<String>,
    /// The version of the model ([`crate::MODEL`]): builds of one version bring the same figures back.
    #[serde(default)]
    pub model: String,
    /// The seed that brings this report back.
    pub seed: u64,
    /// How far the simulations went on; none where the user gave their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Thoroughness>,
    /// The arms that were simulated and their modes.
    pub arms: Vec<ArmModes>,
    /// The cells, in the order of the tables.
    pub cells: Vec<CellReport>,
    /// The iterations of the tables whose rows are statistics, in the order of the tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub iterations: Vec<Iterations>,
    /// The counts of the loads beside their scores, in the order of the tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadFound>,
    /// The machines of the loads, in the format that `-m` reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines_toml: Vec<String>,
    /// The contended cache lines, where the experiment has published figures of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub c2c: Option<LineFound>,
    /// Counts of the cells.
    pub summary: Summary,
    /// The fit of every table, and then of all together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fits: Vec<Fit>,
}

/// An arm's name and modes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArmModes {
    /// The arm's name.
    pub name: String,
    /// The arm's modes, in the syntax of `--set`, or its scheduler.
    pub modes: String,
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The experiment format as TOML has it, before anything is checked.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    pub name: Spanned<String>,
    pub title: String,
    pub source: String,
    /// Of every place that names none.
    pub machine: Option<Spanned<String>>,
    pub era: Spanned<String>,
    pub hz: Spanned<u32>,
    pub root_domain: Option<Spanned<String>>,
    #[serde(default = "default_seed")]
    pub seed: u64,
    pub published: Spanned<String>,
    pub repetitions: Spanned<u32>,
    pub warmup_ms: u32,
    pub measure_ms: Spanned<u32>,
    pub arm: Vec<RawArm>,
    pub benchmark: Vec<RawBenchmark>,
    #[serde(default)]
    pub calibration: Vec<RawCalibration>,
    /// What `perf c2c` said of a line.
    pub c2c: Option<RawC2c>,
}

fn default_seed() -> u64 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawArm {
    pub name: Spanned<String>,
    pub modes: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBenchmark {
    pub name: Spanned<String>,
    /// Of every place that names none.
    pub workload: Option<Spanned<String>>,
    pub score: Option<String>,
    /// The only one's; of several `scores` each has its own.
    pub unit: Option<Spanned<String>>,
    /// Several that each row has a cell for.
    pub scores: Option<Vec<RawScore>>,
    /// Of the only score, as of each of several.
    pub within_rounded: Option<Spanned<f64>>,
    /// The published figures are multiples of an unknown baseline.
    #[serde(default)]
    pub relative: bool,
    /// What the sign of a printed change means.
    #[serde(default)]
    pub printed: RawPrinted,
    /// What stands in the place of `{row}`, for rows that are no key and value themselves.
    #[serde(default)]
    pub keys: BTreeMap<String, Spanned<String>>,
    /// Each a place, or several `place`s.
    pub places: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    pub place: Vec<RawPlace>,
    /// Each a workload, or several `statistics`.
    pub rows: Option<Vec<Spanned<String>>>,
    pub statistics: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    pub effort: Vec<RawEffort>,
}

/// One score of several: a cell of every row.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawScore {
    pub name: Spanned<String>,
    pub unit: Spanned<String>,
    pub within_rounded: Option<Spanned<f64>>,
    /// This one of several was published relative to an unknown baseline.
    #[serde(default)]
    pub relative: bool,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RawPrinted {
    #[default]
    Rise,
    Fall,
}

/// A place that differs from its neighbours in more than its name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPlace {
    pub name: Spanned<String>,
    pub machine: Option<Spanned<String>>,
    pub workload: Option<Spanned<String>>,
}

/// Rows that need to be simulated for longer or shorter, more or less often.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawEffort {
    /// Where rows are workloads; statistics share their simulations.
    pub rows: Option<Vec<Spanned<String>>>,
    /// In these places only; everywhere when left out.
    pub places: Option<Vec<Spanned<String>>>,
    pub repetitions: Option<Spanned<u32>>,
    pub warmup_ms: Option<u32>,
    pub measure_ms: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCalibration {
    pub benchmarks: Vec<Spanned<String>>,
    #[serde(rename = "where")]
    pub place: Spanned<String>,
    pub row: Spanned<String>,
    pub columns: Vec<Spanned<String>>,
    pub why: String,
}

/// A cache line as `perf c2c` reported it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawC2c {
    pub benchmark: Spanned<String>,
    #[serde(rename = "where")]
    pub place: Spanned<String>,
    pub remote_hitm: u32,
    pub local_hitm: u32,
    pub store_hits: u32,
    pub users: Spanned<Vec<RawLineUser>>,
}

/// A row of such a report.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLineUser {
    pub symbol: Spanned<String>,
    pub offset: Spanned<u32>,
    pub remote: Spanned<f64>,
    pub local: Spanned<f64>,
    pub store: Spanned<f64>,
    pub cycles: u32,
    pub records: u32,
}

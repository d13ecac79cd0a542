// SPDX-License-Identifier: GPL-2.0-or-later
//! The experiment format in its TOML form, before anything is checked.

use std::collections::BTreeMap;

use perch_file::Spanned;
use schemars::JsonSchema;
use serde::Deserialize;

/// An experiment, as `perch experiment run FILE` reads it.
#[derive(Deserialize, JsonSchema)]
#[schemars(title = "experiment")]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    pub name: Spanned<String>,
    pub title: String,
    pub source: String,
    /// The machine of every place that names none.
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
    /// The report of `perf c2c` about a line.
    pub c2c: Option<RawC2c>,
}

fn default_seed() -> u64 {
    1
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawArm {
    pub name: Spanned<String>,
    pub modes: Spanned<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBenchmark {
    pub name: Spanned<String>,
    /// The workload of every place that names none.
    pub workload: Option<Spanned<String>>,
    pub score: Option<String>,
    /// The unit of the only score; where there are several `scores`, each has its own.
    pub unit: Option<Spanned<String>>,
    /// The scores, where there are several; each row has a cell for each of them.
    pub scores: Option<Vec<RawScore>>,
    /// The tolerance of the only score, with the same meaning as that of one of several.
    pub within_rounded: Option<Spanned<f64>>,
    /// The published figures are multiples of an unknown baseline.
    #[serde(default)]
    pub relative: bool,
    /// The meaning of the sign of a printed change.
    #[serde(default)]
    pub printed: RawPrinted,
    /// The text that replaces `{row}`, for rows that are no key and value themselves.
    #[serde(default)]
    pub keys: BTreeMap<String, Spanned<String>>,
    /// The names of the places, where there is no list of `place`s.
    pub places: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    pub place: Vec<RawPlace>,
    /// The rows, each a workload, where there are no `statistics`.
    pub rows: Option<Vec<Spanned<String>>>,
    pub statistics: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    pub effort: Vec<RawEffort>,
}

/// One score of several: every row has a cell for it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawScore {
    pub name: Spanned<String>,
    pub unit: Spanned<String>,
    pub within_rounded: Option<Spanned<f64>>,
    /// True where this score, one of several, was published relative to an unknown baseline.
    #[serde(default)]
    pub relative: bool,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum RawPrinted {
    #[default]
    Rise,
    Fall,
}

/// A place that differs from its neighbours in more than its name.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPlace {
    pub name: Spanned<String>,
    pub machine: Option<Spanned<String>>,
    pub workload: Option<Spanned<String>>,
}

/// An effort for rows that need to be simulated for longer or shorter, more or less often.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RawEffort {
    /// The rows that the effort is for, where rows are workloads; statistics share their
    /// simulations.
    pub rows: Option<Vec<Spanned<String>>>,
    /// The places that the effort is for; every place when left out.
    pub places: Option<Vec<Spanned<String>>>,
    pub repetitions: Option<Spanned<u32>>,
    pub warmup_ms: Option<u32>,
    pub measure_ms: Option<Spanned<u32>>,
}

#[derive(Deserialize, JsonSchema)]
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
#[derive(Deserialize, JsonSchema)]
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

/// A row of such a report, which is one function's accesses.
#[derive(Deserialize, JsonSchema)]
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

// SPDX-License-Identifier: GPL-2.0-or-later
//! JSON Schemas of results, made of the types that read and write them.

use schemars::{JsonSchema, Schema};

use crate::compare::Comparison;
use crate::diff::{Diff, ReportDiff};
use crate::report::Report;

/// The form that the experiments of one command have in JSON.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is asked for")]
enum Results {
    /// Of one experiment.
    One(Box<Report>),
    /// Of several.
    Several(Vec<Report>),
}

/// The form that the changes between two files have in JSON.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its schema is asked for")]
enum Diffs {
    /// Of two comparisons.
    Comparisons(Box<Diff>),
    /// Of two results of one experiment.
    Experiment(Box<ReportDiff>),
    /// Of two results of several.
    Experiments(Vec<ReportDiff>),
}

/// Returns the schema of what `perch compare --format json` writes.
pub fn comparison_schema() -> Schema {
    perch_file::result_schema::<Comparison>("result of perch compare")
}

/// Returns the schema of what `perch experiment run --format json` writes.
pub fn result_schema() -> Schema {
    perch_file::result_schema::<Results>("result of perch experiment run")
}

/// Returns the schema of what `perch diff --format json` writes.
pub fn diff_schema() -> Schema {
    perch_file::result_schema::<Diffs>("result of perch diff")
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! JSON Schemas of results, made of the types that read and write them.

use schemars::{JsonSchema, Schema};

use crate::compare::Comparison;
use crate::diff::Diff;
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
    perch_file::result_schema::<Diff>("result of perch diff")
}

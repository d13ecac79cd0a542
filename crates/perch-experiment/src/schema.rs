// SPDX-License-Identifier: GPL-2.0-or-later
//! JSON Schemas of results, made of the types that read and write them.

use schemars::generate::SchemaSettings;
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
    written::<Comparison>("result of perch compare")
}

/// Returns the schema of what `perch experiment run --format json` writes.
pub fn result_schema() -> Schema {
    written::<Results>("result of perch experiment run")
}

/// Returns the schema of what `perch diff --format json` writes.
pub fn diff_schema() -> Schema {
    written::<Diffs>("result of perch diff")
}

/// Returns the schema of what this version writes. Readers of results take more: files of older
/// versions, which lack keys, and keys that they do not know.
fn written<T: JsonSchema>(title: &str) -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_string(), title.into());
    schema
}

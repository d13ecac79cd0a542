// SPDX-License-Identifier: GPL-2.0-or-later
//! The JSON Schema of a sweep's file.
//!
//! [`super::axis`] reads axes by their dotted names, because a name may end anywhere in the machine's
//! file. The types below spell the same rules out as tables. Only their schemas are used.

#![expect(dead_code, reason = "only the schemas of these types are used")]

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use super::axis::Range;
use crate::simulation::OfMachine;

/// Returns the schema of a sweep's file.
pub fn sweep_schema() -> Schema {
    let settings = SchemaSettings::draft2020_12();
    let mut schema = settings.into_generator().into_root_schema_for::<super::File>();
    schema.insert("title".to_string(), "sweep of perch".into());
    schema
}

/// The axes. A key with its dots in quotes, `"workload.n"`, is the same axis as a table in a table: the
/// one way to have an axis `workload` and an axis of the workload's keys in one table.
#[derive(JsonSchema)]
#[schemars(
    deny_unknown_fields,
    extend("patternProperties" = {
        "^workload\\.": { "$ref": "#/$defs/KeyAxis" },
        "^hardware\\.": { "$ref": "#/$defs/MachineAxis" },
        "^numa\\.": { "$ref": "#/$defs/MachineAxis" },
    })
)]
pub(super) struct Axes {
    /// Machines of the library, or paths of machines' files.
    machine: Option<Texts>,
    /// Workloads, or axes of the workload's keys.
    workload: Option<WorkloadAxis>,
    /// Stock kernels.
    era: Option<Texts>,
    /// Ticks per second.
    hz: Option<CountAxis>,
    /// Seeds.
    seed: Option<CountAxis>,
    /// Arms: their names and modes.
    arm: Option<Arms>,
    /// Axes of the machine's costs, by the keys of its file.
    hardware: Option<MachineAxis>,
    /// Axes of the machine's NUMA nodes, by the keys of its file.
    numa: Option<MachineAxis>,
}

/// A list of texts.
#[derive(JsonSchema)]
struct Texts(#[schemars(length(min = 1))] Vec<String>);

/// Whole numbers.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum CountAxis {
    /// These.
    List(#[schemars(length(min = 1))] Vec<u64>),
    /// A range.
    Range(Range),
}

/// The mechanisms' modes in each arm.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Arms {
    /// By the arms' names.
    Named(BTreeMap<String, String>),
    /// The modes are the names.
    Listed(#[schemars(length(min = 1))] Vec<String>),
}

/// Workloads, or keys of the workload with their values.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum WorkloadAxis {
    /// Workloads, as `perch compare` takes them.
    Workloads(#[schemars(length(min = 1))] Vec<String>),
    /// The values of keys.
    Keys(BTreeMap<String, KeyAxis>),
}

/// The values of a key of the workload.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum KeyAxis {
    /// These.
    List(#[schemars(length(min = 1))] Vec<KeyValue>),
    /// A range.
    Range(Range),
}

/// A value of a key of the workload.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum KeyValue {
    Whole(i64),
    Text(String),
    Switch(bool),
}

/// The values of a key of the machine's file, or a table of such keys.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum MachineAxis {
    /// These.
    List(#[schemars(length(min = 1))] Vec<OfMachine>),
    /// A range.
    Range(Range),
    /// A table of the machine's file.
    Table(BTreeMap<String, MachineAxis>),
}

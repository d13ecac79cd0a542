// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch schema`: JSON Schemas of the files that perch reads and writes, for editors and scripts.

use clap::Args;
use perch_file::result_schema;
use perch_report::{Grid, json};
use schemars::Schema;

use crate::output::{Failure, emit};

/// A file's form: its name, what it is, and its schema.
type Form = (&'static str, &'static str, fn() -> Schema);

/// Every form that has a schema: first what perch reads, then what it writes.
const FORMS: &[Form] = &[
    ("machine", "a machine in TOML, as -m FILE takes it", perch_machine::schema),
    (
        "experiment",
        "an experiment in TOML, as perch experiment run FILE takes it",
        perch_experiment::experiment_schema,
    ),
    ("sweep", "a sweep in TOML, as perch sweep run FILE takes it", perch_experiment::sweep_schema),
    (
        "simulation",
        "a simulation in JSON, as perch simulate FILE takes it",
        perch_experiment::simulation_schema,
    ),
    #[cfg(feature = "live")]
    (
        "configuration",
        "the settings of perch run in TOML, as --config FILE takes them",
        perch_plan::settings::schema,
    ),
    (
        "compare",
        "the JSON of perch compare and of perch lab compare",
        perch_experiment::comparison_schema,
    ),
    ("experiment-run", "the JSON of perch experiment run", perch_experiment::result_schema),
    ("diff", "the JSON of perch diff", perch_experiment::diff_schema),
    ("simulate", "the JSON of perch simulate, and each line of perch store export", || {
        result_schema::<perch_experiment::Stored>("result of perch simulate")
    }),
    ("sweep-collect", "the JSON of perch sweep collect", crate::sweep::collected_schema),
    ("sweep-rank", "the JSON of perch sweep rank", crate::sweep::ranked_schema),
    #[cfg(feature = "record")]
    ("import", "the JSON of perch import", || {
        result_schema::<perch_import::Summary>("result of perch import")
    }),
    #[cfg(feature = "record")]
    ("replay", "the JSON of perch replay", || {
        result_schema::<perch_record::ReplayResult>("result of perch replay")
    }),
    #[cfg(feature = "lab")]
    ("teach", "the JSON of perch lab teach", || {
        result_schema::<crate::lab::Lesson>("result of perch lab teach")
    }),
    #[cfg(feature = "record")]
    ("advise", "the JSON of perch advise", || {
        result_schema::<crate::advise::Json>("result of perch advise")
    }),
    #[cfg(feature = "live")]
    ("doctor", "the JSON of perch doctor", || {
        result_schema::<crate::doctor::Checks>("result of perch doctor")
    }),
    #[cfg(feature = "live")]
    ("trial", "the JSON of perch trial", || {
        result_schema::<crate::trial::Report>("result of perch trial")
    }),
    #[cfg(feature = "live")]
    ("stats", "the JSON of perch stats", || {
        result_schema::<perch_scheduler::stats::Report>("result of perch stats")
    }),
];

/// The arguments of `perch schema`.
#[derive(Args)]
pub struct Arguments {
    /// The file's form; without it the forms are listed
    name: Option<String>,
}

/// Carries out `perch schema`.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Some(name) = &arguments.name else {
        return list();
    };
    match FORMS.iter().find(|(known, ..)| known == name) {
        Some((_, _, schema)) => emit(&text(&schema())),
        None => {
            let known = FORMS.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ");
            Err(Failure::input(format!("no schema is called `{name}`: expected one of {known}")))
        }
    }
}

fn list() -> Result<(), Failure> {
    let mut grid = Grid::new(&["name", "of"], &[]);
    for (name, what, _) in FORMS {
        grid.row(vec![name.to_string(), what.to_string()]);
    }
    emit(&grid.text())
}

fn text(schema: &Schema) -> String {
    // The descriptions are the comments of the types, and their links lead nowhere outside of them.
    json(schema).replace("[`", "`").replace("`]", "`")
}

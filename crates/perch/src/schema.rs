// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch schema`: JSON Schemas of the files that perch reads and writes, for editors and scripts.

use clap::Args;
use perch_report::{Align, Grid};

use crate::output::{Failure, emit};

/// A file's form: its name, what it is, and its schema as JSON.
type Form = (&'static str, &'static str, fn() -> String);

/// Every form that has a schema.
const FORMS: [Form; 4] = [
    ("machine", "a machine in TOML, as -m FILE takes it", || {
        text(&perch_machine::schema())
    }),
    (
        "experiment",
        "an experiment in TOML, as perch experiment run FILE takes it",
        || text(&perch_experiment::experiment_schema()),
    ),
    (
        "compare",
        "the JSON of perch compare and of perch lab compare",
        || text(&perch_experiment::comparison_schema()),
    ),
    ("experiment-run", "the JSON of perch experiment run", || {
        text(&perch_experiment::result_schema())
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
        Some((_, _, schema)) => emit(&schema()),
        None => {
            let known = FORMS.map(|(name, ..)| name).join(", ");
            Err(Failure::input(format!(
                "no schema is called `{name}`: expected one of {known}"
            )))
        }
    }
}

fn list() -> Result<(), Failure> {
    let mut grid = Grid::default();
    grid.column("", "name", Align::Left);
    grid.column("", "of", Align::Left);
    for (name, what, _) in FORMS {
        grid.row(vec![name.to_string(), what.to_string()]);
    }
    emit(&grid.text())
}

fn text(schema: &impl serde::Serialize) -> String {
    let text = serde_json::to_string_pretty(schema);
    let text = text.expect("a schema has only text keys");
    // The descriptions are the comments of the types, and their links lead nowhere outside of them.
    text.replace("[`", "`").replace("`]", "`") + "\n"
}

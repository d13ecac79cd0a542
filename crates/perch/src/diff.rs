// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch diff`: an old result of `perch compare` against a new one.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use perch_experiment::{Comparison, Diff, Difference};
use perch_report::{Format, Results, diff};

use crate::gate::Gates;
use crate::output::{Failure, emit_as, say};
use crate::results::results;

/// The arguments of `perch diff`.
#[derive(Args)]
pub struct Arguments {
    /// The old result: of perch compare or perch lab compare, with --format json; - is stdin
    #[arg(value_name = "OLD.json", value_hint = ValueHint::FilePath)]
    old: PathBuf,
    /// The new result of the same question, by another build or kernel
    #[arg(value_name = "NEW.json", value_hint = ValueHint::FilePath)]
    new: PathBuf,
    /// Also compare results whose machine, workload or kernel differ
    #[arg(long)]
    anyway: bool,
    #[command(flatten)]
    gates: Gates,
    /// How to write the result: table, markdown, csv or json
    #[arg(long, default_value = "table", value_name = "FORMAT")]
    format: Format,
    /// Say nothing on stderr but errors
    #[arg(long, short)]
    quiet: bool,
}

/// Carries out `perch diff`.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (old_path, new_path) = (&arguments.old, &arguments.new);
    if old_path == new_path && old_path == Path::new("-") {
        return Err(Failure::input(
            "both results are -, and stdin has one; expected a file for one of them",
        ));
    }
    let (old, new) = (comparison(old_path)?, comparison(new_path)?);
    let found = Diff::of(&old, &new);
    let files = format!("{} and {}", old_path.display(), new_path.display());
    if !arguments.anyway && !found.differs.is_empty() {
        let differs: Vec<String> = found.differs.iter().map(words).collect();
        return Err(Failure::input(format!(
            "{files} answer different questions: {}; --anyway compares them all the same",
            differs.join("; ")
        )));
    }
    let changes = found.changes();
    let mut arms: Vec<&str> = Vec::new();
    for change in &changes {
        if !arms.contains(&change.arm) {
            arms.push(change.arm);
        }
    }
    if arms.is_empty() {
        return Err(Failure::input(format!(
            "{files} have no arm and score in common: {}",
            found.notes.join("; ")
        )));
    }
    let repetitions = found.repetitions[0].min(found.repetitions[1]);
    let gates = (arguments.gates).begin(None, &arms, repetitions, arguments.quiet)?;
    if !arguments.quiet {
        found.notes.iter().for_each(say);
    }
    emit_as(arguments.format, &diff(&found, arguments.format))?;
    gates.judge(&changes)
}

/// Reads a result of `perch compare`.
fn comparison(path: &Path) -> Result<Comparison, Failure> {
    match results(path)? {
        Results::Comparison(found) => Ok(*found),
        Results::Experiments(_) => Err(Failure::input(format!(
            "{} is a result of perch experiment run; expected one of perch compare or of perch lab \
             compare, with --format json (perch experiment check compares experiments)",
            path.display()
        ))),
    }
}

fn words(differs: &Difference) -> String {
    let [old, new] = [&differs.old, &differs.new].map(|value| match value.as_str() {
        "" => "nothing".to_string(),
        value => format!("`{value}`"),
    });
    let key = differs.key;
    format!("{key} is {old} in the old and {new} in the new one")
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch diff`: an old result of `perch compare` or `perch experiment run` against a new one.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use perch_experiment::{Change, Diff, Difference, Report, ReportsDiff};
use perch_report::{Format, Results, diff, report_diffs};

use crate::gate::Gates;
use crate::output::{Failure, emit_as, say};
use crate::results::results;

/// The arguments of `perch diff`.
#[derive(Args)]
pub struct Arguments {
    /// The old result: of perch compare, perch lab compare or perch experiment run, with --format json; -
    /// is stdin
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
    match (results(old_path)?, results(new_path)?) {
        (Results::Comparison(old), Results::Comparison(new)) => {
            comparisons(arguments, &Diff::of(&old, &new))
        }
        (Results::Experiments(old), Results::Experiments(new)) => {
            experiments(arguments, &old, &new)
        }
        (old, new) => Err(Failure::input(format!(
            "{} is {}, and {} is {}; expected two results of perch compare, of perch lab compare or of \
             perch experiment run, with --format json",
            old_path.display(),
            kind(&old),
            new_path.display(),
            kind(&new)
        ))),
    }
}

fn kind(results: &Results) -> &'static str {
    match results {
        Results::Comparison(_) => "a result of perch compare",
        Results::Experiments(_) => "a result of perch experiment run",
    }
}

/// The changes between the two files, of either kind.
struct Changes<'a> {
    /// The differences between the questions, in words.
    differs: Vec<String>,
    /// Everything else that is not in both.
    notes: Vec<&'a String>,
    /// The repetitions of each arm, where there are most.
    repetitions: u32,
    /// The workload or the experiments.
    of: String,
    changes: Vec<Change<'a>>,
    /// The text for stdout.
    text: String,
}

fn comparisons(arguments: &Arguments, found: &Diff) -> Result<(), Failure> {
    let [old, new] = found.repetitions;
    answer(
        arguments,
        Changes {
            differs: found.differs.iter().map(words).collect(),
            notes: found.notes.iter().collect(),
            repetitions: old.min(new),
            of: found.workload.clone(),
            changes: found.changes(),
            text: diff(found, arguments.format),
        },
    )
}

fn experiments(arguments: &Arguments, old: &[Report], new: &[Report]) -> Result<(), Failure> {
    let found = ReportsDiff::of(old, new);
    let all = &found.experiments;
    if all.is_empty() {
        let names = |reports: &[Report]| {
            let names = reports.iter().map(|report| report.experiment.as_str());
            names.collect::<Vec<_>>().join(", ")
        };
        return Err(Failure::input(format!(
            "{} is of {}, and {} of {}; expected results of the same experiment",
            arguments.old.display(),
            names(old),
            arguments.new.display(),
            names(new)
        )));
    }
    let differs = all.iter().flat_map(|one| {
        let differs = one.differs.iter();
        differs.map(move |differs| format!("{}: {}", one.experiment, words(differs)))
    });
    let cells = all.iter().flat_map(|one| &one.cells);
    let repetitions = cells.map(|cell| cell.repetitions[0].min(cell.repetitions[1]));
    let names = all.iter().map(|one| one.experiment.as_str());
    answer(
        arguments,
        Changes {
            differs: differs.collect(),
            notes: (found.notes.iter()).chain(all.iter().flat_map(|one| &one.notes)).collect(),
            repetitions: repetitions.max().unwrap_or(0) as u32,
            of: names.collect::<Vec<_>>().join(", "),
            changes: found.changes(),
            text: report_diffs(all, arguments.format),
        },
    )
}

fn words(differs: &Difference) -> String {
    let [old, new] = [&differs.old, &differs.new].map(|value| match value.as_str() {
        "" => "nothing".to_string(),
        value => format!("`{value}`"),
    });
    let key = differs.key;
    format!("{key} is {old} in the old and {new} in the new one")
}

/// Prints the changes, and judges them.
fn answer(arguments: &Arguments, found: Changes) -> Result<(), Failure> {
    let files = format!("{} and {}", arguments.old.display(), arguments.new.display());
    if !arguments.anyway && !found.differs.is_empty() {
        return Err(Failure::input(format!(
            "{files} answer different questions: {}; --anyway compares them all the same",
            found.differs.join("; ")
        )));
    }
    let mut arms: Vec<&str> = Vec::new();
    for change in &found.changes {
        if !arms.contains(&change.arm) {
            arms.push(change.arm);
        }
    }
    if arms.is_empty() {
        let notes: Vec<&str> = found.notes.iter().map(|note| note.as_str()).collect();
        return Err(Failure::input(format!(
            "{files} have no arm and score in common: {}",
            notes.join("; ")
        )));
    }
    let gates = (arguments.gates).begin(None, &arms, found.repetitions, arguments.quiet)?;
    if !arguments.quiet {
        found.notes.iter().for_each(say);
    }
    emit_as(arguments.format, &found.text)?;
    gates.judge(&found.of, &found.changes)
}

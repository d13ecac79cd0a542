// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch experiment check`: does every cell that agreed with its source still agree?

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use perch_experiment::{CellReport, CellVerdict, Moved, Report, verdicts};
use perch_report::{Grid, Results, percent};

use crate::output::{Failure, emit, say};
use crate::results::results;

/// The arguments of `perch experiment check`.
#[derive(Args)]
pub struct CheckArguments {
    /// The new result: of perch experiment run with --format json; - is stdin
    #[arg(value_name = "RESULT.json", value_hint = ValueHint::FilePath)]
    result: PathBuf,
    /// The result that was kept, of the same command by an earlier perch
    #[arg(long, value_name = "KEPT.json", value_hint = ValueHint::FilePath)]
    against: PathBuf,
    /// Say nothing on stderr but errors
    #[arg(long, short)]
    quiet: bool,
}

/// Carries out `perch experiment check`.
pub fn run(arguments: &CheckArguments) -> Result<(), Failure> {
    let (result, against) = (&arguments.result, &arguments.against);
    if result == against && result == Path::new("-") {
        return Err(Failure::input(
            "both results are -, and stdin has one; expected a file for one of them",
        ));
    }
    let (new, kept) = (experiments(result)?, experiments(against)?);
    let cells = verdicts(&kept, &new);
    if cells.iter().all(|cell| cell.new.is_none()) {
        return Err(Failure::input(format!(
            "{} and {} have no scored cell in common; expected results of the same experiments",
            result.display(),
            against.display()
        )));
    }
    let of = |moved: Moved| cells.iter().filter(move |cell| cell.moved() == moved);
    if cells.iter().any(|cell| cell.moved() != Moved::Held) {
        emit(&table(&cells))?;
    }
    let words = format!(
        "{} cells: {} held, {} failed, {} got worse, {} missing",
        cells.len(),
        of(Moved::Held).count(),
        of(Moved::Failed).count(),
        of(Moved::Worse).count(),
        of(Moved::Missing).count()
    );
    if !arguments.quiet {
        say(&words);
    }
    match of(Moved::Failed).count() {
        0 => Ok(()),
        failed => Err(Failure::gate(format!(
            "{failed} cells disagree that agreed in {}",
            against.display()
        ))),
    }
}

/// Reads experiments.
fn experiments(path: &Path) -> Result<Vec<Report>, Failure> {
    match results(path)? {
        Results::Experiments(reports) => Ok(reports),
        Results::Comparison(_) => Err(Failure::input(format!(
            "{} has no cells; expected the output of perch experiment run --format json",
            path.display()
        ))),
    }
}

/// Returns the cells whose verdict did not hold.
fn table(cells: &[CellVerdict]) -> String {
    let mut grid =
        Grid::new(&["cell", "kept", "new", ""], &["published", "kept change", "new change"]);
    for cell in cells {
        let word = match cell.moved() {
            Moved::Held => continue,
            Moved::Failed => "FAILED",
            Moved::Worse => "worse",
            Moved::Missing => "missing",
        };
        grid.row(vec![
            cell.name(),
            cell.kept.verdict.name().to_string(),
            cell.new.map_or("-", |new| new.verdict.name()).to_string(),
            word.to_string(),
            percent(cell.kept.published.delta_pct),
            change(cell.kept),
            cell.new.map_or("-".to_string(), change),
        ]);
    }
    grid.text()
}

/// Returns a cell's simulated change with its interval.
fn change(cell: &CellReport) -> String {
    let half = cell.simulated.ci95_pct;
    let half = half.map_or(String::new(), |half| format!(" ±{half:.2}"));
    format!("{}{half}", percent(cell.simulated.delta_pct))
}

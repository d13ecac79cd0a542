// SPDX-License-Identifier: GPL-2.0-or-later
//! Tables of the changes from an old result of an experiment to a new one.

use std::fmt::Write as _;

use perch_experiment::{CellDiff, ReportDiff};

use super::{header, record};
use crate::figure::{direction, figure, interval, percent};
use crate::format::Format;
use crate::grid::{Align, Grid};
use crate::records::{json, write_csv};

/// Returns the changes in the form of `format`. JSON is one object for one experiment and a list for
/// several.
pub fn report_diffs(diffs: &[ReportDiff], format: Format) -> String {
    let blocks = |mark, write| {
        let blocks = diffs.iter().map(|diff| sections(diff, mark, write));
        blocks.collect::<Vec<_>>().join("\n")
    };
    match format {
        Format::Table => blocks("", Grid::text),
        Format::Markdown => blocks("### ", Grid::markdown),
        Format::Csv => csv(diffs),
        Format::Json => match diffs {
            [diff] => json(diff),
            several => json(several),
        },
    }
}

fn sections(diff: &ReportDiff, mark: &str, write: fn(&Grid) -> String) -> String {
    let blank = if mark.is_empty() { "" } else { "\n" };
    let mut text = format!("{}: {}, Linux {}\n", diff.experiment, diff.machine, diff.era);
    let table = |cell: &CellDiff| (cell.benchmark.clone(), cell.place.clone(), cell.unit.clone());
    for cells in diff.cells.chunk_by(|one, next| table(one) == table(next)) {
        let first = &cells[0];
        let direction = direction(first.higher_is_better);
        let _ = writeln!(
            text,
            "\n{mark}{}, {} ({}, {direction}){blank}",
            first.benchmark, first.place, first.unit
        );
        text.push_str(&write(&grid(cells)));
    }
    text
}

fn grid(cells: &[CellDiff]) -> Grid {
    let mut arms: Vec<&str> = Vec::new();
    for arm in cells.iter().flat_map(|cell| &cell.arms) {
        if !arms.contains(&arm.arm.as_str()) {
            arms.push(&arm.arm);
        }
    }
    let mut grid = Grid::new(&["row"], &[]);
    for arm in &arms {
        grid.columns(arm, &["old", "new", "change", "±95%"], Align::Right);
    }
    grid.column("", "runs", Align::Right);
    for cell in cells {
        let mut row = vec![cell.row.clone()];
        for arm in &arms {
            row.extend(match cell.arms.iter().find(|one| one.arm == *arm) {
                None => ["-"; 4].map(str::to_string),
                Some(one) => [
                    figure(one.old),
                    figure(one.new),
                    percent(one.delta_pct),
                    interval(one.delta_ci95_pct),
                ],
            });
        }
        row.push(match cell.repetitions {
            [old, new] if old == new => new.to_string(),
            [old, new] => format!("{old}, {new}"),
        });
        grid.row(row);
    }
    grid
}

/// Writes one line per figure.
fn csv(diffs: &[ReportDiff]) -> String {
    let what = ["experiment", "benchmark", "where", "row", "unit"];
    let mut records = vec![header(&what)];
    for diff in diffs {
        for cell in &diff.cells {
            let what =
                [diff.experiment.as_str(), &cell.benchmark, &cell.place, &cell.row, &cell.unit];
            records.extend(cell.arms.iter().map(|arm| record(&what, arm)));
        }
    }
    write_csv(&records)
}

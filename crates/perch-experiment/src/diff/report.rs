// SPDX-License-Identifier: GPL-2.0-or-later
//! Two results of `perch experiment run` set side by side, cell by cell.

use schemars::JsonSchema;
use serde::Serialize;

use super::{ArmDiff, Difference, arm_notes};
use crate::cell::CellReport;
use crate::gate::Change;
use crate::model::{BASELINE, PATCHED};
use crate::report::{Iterations, Report};
use crate::stats::{Delta, Sample, ci95_of, welch};

/// The changes from the old results of some experiments to the new ones.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportsDiff {
    /// The experiments that both results have, in the order of the new one.
    pub experiments: Vec<ReportDiff>,
    /// The experiments that only one result has, in words.
    pub notes: Vec<String>,
}

/// The changes from the old result of an experiment to a new one. The field names are the keys of the
/// JSON that docs/formats.md describes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReportDiff {
    /// The experiment's name.
    pub experiment: String,
    /// The new result's machine.
    pub machine: String,
    /// The new result's kernel.
    pub era: String,
    /// The keys of the question that differ: of two questions nobody expects one answer.
    pub differs: Vec<Difference>,
    /// Everything else that is not in both, in words.
    pub notes: Vec<String>,
    /// The cells that both have, in the order of the new result.
    pub cells: Vec<CellDiff>,
}

/// One cell of both results.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CellDiff {
    /// The name by which gates know the cell: `BENCHMARK/WHERE/ROW`, with `EXPERIMENT/` before it where
    /// the results have several experiments.
    #[serde(skip)]
    pub name: String,
    /// The benchmark.
    pub benchmark: String,
    /// The set of CPUs to which the benchmark was pinned, or the machine it ran on.
    #[serde(rename = "where")]
    pub place: String,
    /// The row's name.
    pub row: String,
    /// The unit of the figures.
    pub unit: String,
    /// True where more is better.
    pub higher_is_better: bool,
    /// Repetitions per arm, old and new.
    pub repetitions: [usize; 2],
    /// The arms that both results have: `baseline`, `patched`, and further ones.
    pub arms: Vec<ArmDiff>,
}

/// The figure of one arm in one cell.
#[derive(Clone, Copy)]
struct Figure {
    mean: f64,
    std: Option<f64>,
}

impl ReportsDiff {
    /// Sets the results of experiments side by side, those of one name.
    pub fn of(old: &[Report], new: &[Report]) -> ReportsDiff {
        let mut notes = Vec::new();
        let mut pairs = Vec::new();
        let same = |one: &Report, other: &Report| one.experiment == other.experiment;
        for (at, report) in new.iter().enumerate() {
            // A result may have an experiment twice.
            let before = new[..at].iter().filter(|one| same(one, report)).count();
            match old.iter().filter(|one| same(one, report)).nth(before) {
                Some(was) => pairs.push((was, report)),
                None => notes.push(format!("only the new result has {}", report.experiment)),
            }
        }
        for was in old {
            if !new.iter().any(|report| same(was, report)) {
                notes.push(format!("only the old result has {}", was.experiment));
            }
        }
        let is_alone = pairs.len() == 1;
        let experiments = pairs.iter();
        let experiments = experiments.map(|(old, new)| ReportDiff::of(old, new, is_alone));
        ReportsDiff { experiments: experiments.collect(), notes }
    }

    /// Returns the changes of all arms, cell by cell.
    pub fn changes(&self) -> Vec<Change<'_>> {
        let cells = self.experiments.iter().flat_map(|one| &one.cells);
        let changes = cells.flat_map(|cell| {
            cell.arms.iter().map(|arm| Change {
                arm: &arm.arm,
                score: &cell.name,
                pct: arm.delta_pct,
                ci95_pct: arm.delta_ci95_pct,
                settled: true,
            })
        });
        changes.collect()
    }
}

impl ReportDiff {
    fn of(old: &Report, new: &Report, is_alone: bool) -> ReportDiff {
        let mut notes = notes(old, new);
        let mut cells = Vec::new();
        for cell in &new.cells {
            match old.cells.iter().find(|was| is_same(was, cell)) {
                None => notes.push(format!("only the new result has {}", name(cell))),
                Some(was) => {
                    let mut found = cell_diff((old, was), (new, cell));
                    if !is_alone {
                        found.name = format!("{}/{}", new.experiment, found.name);
                    }
                    cells.push(found);
                }
            }
        }
        let gone = |was: &&CellReport| !new.cells.iter().any(|cell| is_same(was, cell));
        let gone = old.cells.iter().filter(gone);
        notes.extend(gone.map(|was| format!("only the old result has {}", name(was))));
        ReportDiff {
            experiment: new.experiment.clone(),
            machine: new.machine.clone(),
            era: new.era.clone(),
            differs: differs(old, new),
            notes,
            cells,
        }
    }
}

/// Returns whether both are the same cell of one experiment.
fn is_same(one: &CellReport, other: &CellReport) -> bool {
    one.shares_table(other) && one.row == other.row
}

fn name(cell: &CellReport) -> String {
    format!("{}/{}/{}", cell.benchmark, cell.place, cell.row)
}

/// Compares the keys of the question.
fn differs(old: &Report, new: &Report) -> Vec<Difference> {
    let keys = |one: &Report| {
        [
            ("machine", one.machine.clone()),
            ("era", one.era.clone()),
            ("hz", one.hz.to_string()),
            ("root_domain", one.root_domain.clone().unwrap_or_default()),
        ]
    };
    Difference::of(keys(old), keys(new))
}

/// Says what else is not the same in both results.
fn notes(old: &Report, new: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    if old.machine == new.machine && old.machines_toml != new.machines_toml {
        notes.push(format!("the figures of machine {} differ", new.machine));
    }
    let times = |cell: &CellReport| (cell.warmup_ms, cell.measure_ms);
    let other_times = new.cells.iter().filter(|cell| {
        let was = old.cells.iter().find(|was| is_same(was, cell));
        was.is_some_and(|was| times(was) != times(cell))
    });
    match other_times.count() {
        0 => {}
        cells => notes.push(format!(
            "warm-up and measured time differ in {cells} of {} cells",
            new.cells.len()
        )),
    }
    let relative = new.cells.iter().filter(|cell| is_relative(cell)).count();
    if relative > 0 {
        notes.push(format!(
            "cells whose figures are multiples of their own baseline: {relative}; they cannot tell how the \
             baseline changed"
        ));
    }
    arm_notes(&old.arms, &new.arms, &mut notes);
    notes
}

/// Returns whether a cell's figures are multiples of the baseline, because the source's are. The
/// baseline is then the same number whatever was simulated.
fn is_relative(cell: &CellReport) -> bool {
    cell.baseline_ratio.is_none()
}

/// Returns the figures of a cell by arm.
fn figures(cell: &CellReport) -> Vec<(&str, Figure)> {
    let simulated = &cell.simulated;
    let figure = |mean, std| Figure { mean, std };
    let baseline = figure(simulated.baseline, simulated.baseline_std);
    let patched = figure(simulated.patched, simulated.patched_std);
    let mut all = Vec::new();
    if !is_relative(cell) {
        all.push((BASELINE, baseline));
    }
    all.push((PATCHED, patched));
    let further = cell.further.iter();
    all.extend(further.map(|arm| (arm.arm.as_str(), figure(arm.mean, arm.std))));
    all
}

fn cell_diff((old, was): (&Report, &CellReport), (new, cell): (&Report, &CellReport)) -> CellDiff {
    let before = figures(was);
    let arms = figures(cell).into_iter().filter_map(|(arm, to)| {
        let (_, from) = *before.iter().find(|(other, _)| *other == arm)?;
        let [old_sample, new_sample] =
            [(from, was), (to, cell)].map(|(figure, of)| sample(figure, of.repetitions));
        // Where a seed brings back the same figures to the last bit, it has brought back the same
        // repetitions, and none of them changed. A maximum alone may be the same by chance.
        let is_repeated = (old.seed, was.repetitions, from.mean, from.std)
            == (new.seed, cell.repetitions, to.mean, to.std)
            && (to.std.is_some() || values(old, was, arm) == values(new, cell, arm));
        let Delta { pct, ci95_pct } =
            if is_repeated { Delta::none(cell.repetitions) } else { welch(old_sample, new_sample) };
        Some(ArmDiff {
            arm: arm.to_string(),
            old: from.mean,
            old_ci95: old_sample.ci95,
            new: to.mean,
            new_ci95: new_sample.ci95,
            delta_pct: pct,
            delta_ci95_pct: ci95_pct,
        })
    });
    CellDiff {
        name: name(cell),
        benchmark: cell.benchmark.clone(),
        place: cell.place.clone(),
        row: cell.row.clone(),
        unit: cell.unit.clone(),
        higher_is_better: cell.higher_is_better,
        repetitions: [was.repetitions, cell.repetitions],
        arms: arms.collect(),
    }
}

fn sample(figure: Figure, repetitions: usize) -> Sample {
    Sample {
        mean: figure.mean,
        ci95: figure.std.and_then(|std| ci95_of(std, repetitions)),
        n: repetitions,
    }
}

/// Returns an arm's iterations behind the table of a cell whose rows are statistics.
fn values<'a>(report: &'a Report, cell: &CellReport, arm: &str) -> Option<&'a [f64]> {
    let is_its = |one: &&Iterations| {
        (&one.benchmark, &one.place, &one.unit) == (&cell.benchmark, &cell.place, &cell.unit)
    };
    let table = report.iterations.iter().find(is_its)?;
    let found = table.arms.iter().find(|one| one.arm == arm)?;
    Some(&found.values)
}

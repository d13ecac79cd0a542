// SPDX-License-Identifier: GPL-2.0-or-later
//! One table of an experiment or a comparison, as the input of the formats that are pasted
//! elsewhere.

use perch_experiment::{CellReport, Comparison, Report};

/// An arm's figure in a row, and its change from the first arm's.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The figure, in the unit of the sheet.
    pub value: f64,
    /// The change in percent of the first arm's figure; a rise is positive. It is not finite where
    /// the first arm's figure is 0.
    pub delta_pct: f64,
    /// Half the width of the change's 95 % confidence interval, in percentage points.
    pub ci95_pct: Option<f64>,
}

/// A row: its label, and a figure an arm.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The row's name: `n=4`, `n=4:wake_p99.0`, `mean`.
    pub label: String,
    /// The unit of the row's figures.
    pub unit: String,
    /// True where more is better.
    pub higher_is_better: bool,
    /// The figures by arm; the first arm's has no change.
    pub figures: Vec<Figure>,
    /// The change that was published for the second arm, in percent; a rise is positive.
    pub published_pct: Option<f64>,
    /// True where costs were fitted on the row.
    pub fitted: bool,
    /// True where time alone still changed the figure of an arm.
    pub unsettled: bool,
}

impl Row {
    /// Returns the number after `n=`, where the row is for a number of threads, clients or groups;
    /// and the score after that number.
    pub fn of_load(&self) -> Option<(&str, Option<&str>)> {
        let (number, score) = match self.label.split_once(':') {
            Some((number, score)) => (number, Some(score.trim_start())),
            None => (self.label.as_str(), None),
        };
        let number = number.strip_prefix("n=")?;
        let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        is_number.then_some((number, score))
    }

    /// Returns how much better an arm is than the first, in percent: the figure that mmtests
    /// prints.
    pub fn gain_pct(&self, arm: usize) -> f64 {
        self.gain_of(self.figures[arm].delta_pct)
    }

    /// Returns the gain of a given change in the same way.
    pub fn gain_of(&self, delta: f64) -> f64 {
        // The subtraction avoids -0.
        if self.higher_is_better { delta + 0.0 } else { 0.0 - delta }
    }

    /// Returns true where the change is larger than chance explains, and time alone explains none of it.
    pub fn is_significant(&self, arm: usize) -> bool {
        let figure = &self.figures[arm];
        !self.unsettled && figure.ci95_pct.is_some_and(|half| figure.delta_pct.abs() > half)
    }
}

/// The iterations from which a sheet's statistics are made.
#[derive(Clone, Debug, PartialEq)]
pub struct Iterations {
    /// The workload that ran, in the syntax of `perch compare`.
    pub workload: String,
    /// The values by arm, in the unit of the sheet.
    pub values: Vec<Vec<f64>>,
}

/// One table.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// The benchmark, or the quantity that a comparison measures.
    pub benchmark: String,
    /// The set of CPUs to which the benchmark was pinned, or the machine it ran on; empty for a
    /// comparison.
    pub place: String,
    /// The arms; the others are compared with the first.
    pub arms: Vec<String>,
    /// The rows, at least one.
    pub rows: Vec<Row>,
    /// The iterations, where the rows are statistics.
    pub iterations: Option<Iterations>,
}

impl Sheet {
    /// Returns the tables of a report, in its order; cells of several units at one place make one
    /// table.
    pub fn of_report(report: &Report) -> Vec<Sheet> {
        let place = |cell: &CellReport| (cell.benchmark.clone(), cell.place.clone());
        let tables = report.cells.chunk_by(|a, b| place(a) == place(b));
        tables.map(|cells| Sheet::of_cells(report, cells)).collect()
    }

    fn of_cells(report: &Report, cells: &[CellReport]) -> Sheet {
        let first = &cells[0];
        let iterations = report
            .iterations
            .iter()
            .find(|found| (&found.benchmark, &found.place) == (&first.benchmark, &first.place));
        let further = first.further.iter().map(|arm| arm.arm.clone());
        Sheet {
            benchmark: first.benchmark.clone(),
            place: first.place.clone(),
            arms: ["baseline", "patched"].map(str::to_string).into_iter().chain(further).collect(),
            rows: cells.iter().map(Row::of_cell).collect(),
            iterations: iterations.map(|found| Iterations {
                workload: found.workload.clone(),
                values: found.arms.iter().map(|arm| arm.values.clone()).collect(),
            }),
        }
    }

    /// Returns a comparison's scores: one table per score if they come with statistics, else one
    /// table of all.
    pub fn of_comparison(comparison: &Comparison) -> Vec<Sheet> {
        let arms: Vec<String> = comparison.arms.iter().map(|arm| arm.name.clone()).collect();
        let sheet = |benchmark: &str, rows, iterations| Sheet {
            benchmark: benchmark.to_string(),
            place: String::new(),
            arms: arms.clone(),
            rows,
            iterations,
        };
        let mut means = Vec::new();
        let mut sheets = Vec::new();
        for score in &comparison.scores {
            let row = |label: &str, higher_is_better, figures| Row {
                label: label.to_string(),
                unit: score.unit.clone(),
                higher_is_better,
                figures,
                published_pct: None,
                fitted: false,
                unsettled: (score.arms.iter()).any(|arm| comparison.unsettled(arm).is_some()),
            };
            let count = score.arms.first().map_or(0, |arm| arm.statistics.len());
            if count == 0 {
                let figures = score.arms.iter();
                let figures = figures.map(|arm| Figure {
                    value: arm.mean,
                    delta_pct: arm.delta_pct,
                    ci95_pct: arm.delta_ci95_pct,
                });
                means.push(row(&score.name, score.higher_is_better, figures.collect()));
                continue;
            }
            let rows = (0..count).map(|index| {
                let name = score.arms[0].statistics[index].statistic.as_str();
                let figures = score.arms.iter().map(|arm| {
                    let found = &arm.statistics[index];
                    Figure {
                        value: found.value,
                        delta_pct: found.delta_pct,
                        ci95_pct: found.delta_ci95_pct,
                    }
                });
                row(name, better(name, score.higher_is_better), figures.collect())
            });
            let iterations = Iterations {
                workload: comparison.workload.clone(),
                values: score.arms.iter().map(|a| a.iterations.clone()).collect(),
            };
            sheets.push(sheet(&score.name, rows.collect(), Some(iterations)));
        }
        if !means.is_empty() {
            sheets.insert(0, sheet(&comparison.workload, means, None));
        }
        sheets
    }
}

/// Returns whether more of a statistic is better: less of a spread is always better, whatever it is
/// the spread of.
fn better(statistic: &str, higher_is_better: bool) -> bool {
    higher_is_better && statistic != "std"
}

impl Row {
    fn of_cell(cell: &CellReport) -> Row {
        let simulated = &cell.simulated;
        let first = Figure { value: simulated.baseline, delta_pct: 0.0, ci95_pct: None };
        let second = Figure {
            value: simulated.patched,
            delta_pct: simulated.delta_pct,
            ci95_pct: simulated.ci95_pct,
        };
        let further = cell.further.iter().map(|arm| Figure {
            value: arm.mean,
            delta_pct: arm.delta_pct,
            ci95_pct: arm.ci95_pct,
        });
        Row {
            label: cell.row.clone(),
            unit: cell.unit.clone(),
            higher_is_better: better(&cell.row, cell.higher_is_better),
            figures: [first, second].into_iter().chain(further).collect(),
            published_pct: Some(cell.published.delta_pct),
            fitted: cell.calibration,
            unsettled: cell.transient_ms.is_some(),
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-only
//! What an experiment found, cell by cell, held against what was published. The field names are
//! the keys of the JSON that docs/formats.md describes.

use serde::Serialize;

use crate::model::Cell;
use crate::published::Published;
use crate::stats::{Delta, delta, mean};

/// A simulated change may miss the published one by this many percentage points; where a
/// standard deviation was published, by twice that if it is more.
const WITHIN_PP: f64 = 3.0;
/// The direction of a change counts where the published one is beyond this, in percent: below it
/// the published tables' own noise decides.
const SIGN_PCT: f64 = 3.0;
/// A simulated baseline is close when it is within these multiples of the published one.
const CLOSE: std::ops::RangeInclusive<f64> = 0.8..=1.25;

/// The means of the two arms that the published columns are held against.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Simulated {
    /// Mean over the repetitions, in the cell's unit.
    pub baseline: f64,
    /// Likewise.
    pub patched: f64,
    /// The change of the means, in percent of the baseline.
    pub delta_pct: f64,
    /// Half the width of the change's 95 % confidence interval, in percentage points; null for
    /// fewer than two repetitions.
    pub ci95_pct: Option<f64>,
}

/// A further arm, which nothing published is held against.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArmResult {
    /// Its name.
    pub arm: String,
    /// Mean over the repetitions, in the cell's unit.
    pub mean: f64,
    /// The change from the baseline, in percent of it.
    pub delta_pct: f64,
    /// As [`Simulated::ci95_pct`].
    pub ci95_pct: Option<f64>,
}

/// One row of one table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellReport {
    /// The benchmark.
    pub benchmark: String,
    /// Where it was pinned.
    #[serde(rename = "where")]
    pub place: String,
    /// The row.
    pub row: String,
    /// The unit of all figures but the percentages.
    pub unit: String,
    /// What was measured on hardware.
    pub published: Published,
    /// What was simulated.
    pub simulated: Simulated,
    /// Simulated over published baseline.
    pub baseline_ratio: f64,
    /// Costs were fitted on this cell: it is shown and never scored.
    pub calibration: bool,
    /// The simulated change is as near to the published one as the published noise allows.
    pub within: bool,
    /// Both changes have the same direction.
    pub sign_agrees: bool,
    /// The columns that were fitted, where any were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fitted: Vec<String>,
    /// Further arms, where asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<ArmResult>,
}

impl CellReport {
    /// `values` holds, for each arm in `arms` and in that order, one value a repetition.
    pub(crate) fn new(cell: &Cell, arms: &[&str], values: &[Vec<f64>]) -> CellReport {
        let published = cell.published;
        let (baseline, patched) = (&values[0], &values[1]);
        let Delta { pct, ci95_pct } = delta(baseline, patched);
        let further = arms.iter().zip(values).skip(2).map(|(arm, values)| {
            let Delta { pct, ci95_pct } = delta(baseline, values);
            ArmResult {
                arm: arm.to_string(),
                mean: mean(values),
                delta_pct: pct,
                ci95_pct,
            }
        });
        let tolerance = published
            .sd_pct
            .map_or(WITHIN_PP, |sd| WITHIN_PP.max(2.0 * sd));
        CellReport {
            benchmark: cell.benchmark.clone(),
            place: cell.place.clone(),
            row: cell.row.clone(),
            unit: cell.unit.clone(),
            published,
            simulated: Simulated {
                baseline: mean(baseline),
                patched: mean(patched),
                delta_pct: pct,
                ci95_pct,
            },
            baseline_ratio: mean(baseline) / published.baseline,
            calibration: cell.calibration.is_some(),
            within: (pct - published.delta_pct).abs() <= tolerance,
            sign_agrees: pct * published.delta_pct > 0.0,
            fitted: cell
                .calibration
                .as_ref()
                .map_or(Vec::new(), |fitted| fitted.columns.clone()),
            further: further.collect(),
        }
    }

    /// Whether the direction of its change counts.
    pub fn sign_is_scored(&self) -> bool {
        !self.calibration && self.published.delta_pct.abs() > SIGN_PCT
    }

    /// Whether its baseline is close to the published one.
    pub fn baseline_is_close(&self) -> bool {
        CLOSE.contains(&self.baseline_ratio)
    }
}

/// The cells counted, calibration cells left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Cells that count.
    pub scored: usize,
    /// Of those, the ones within.
    pub within: usize,
    /// Cells whose direction counts.
    pub sign_scored: usize,
    /// Of those, the ones that agree.
    pub sign_agrees: usize,
    /// Cells whose simulated baseline is 0.8 to 1.25 of the published one.
    pub baseline_close: usize,
    /// Of so many.
    pub baseline_rows: usize,
}

impl Summary {
    pub(crate) fn of(cells: &[CellReport]) -> Summary {
        let scored = || cells.iter().filter(|cell| !cell.calibration);
        let signs = || cells.iter().filter(|cell| cell.sign_is_scored());
        Summary {
            scored: scored().count(),
            within: scored().filter(|cell| cell.within).count(),
            sign_scored: signs().count(),
            sign_agrees: signs().filter(|cell| cell.sign_agrees).count(),
            baseline_close: scored().filter(|cell| cell.baseline_is_close()).count(),
            baseline_rows: scored().count(),
        }
    }
}

/// What an experiment found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The experiment's name.
    pub experiment: String,
    /// What it is about.
    pub title: String,
    /// Where the figures were published.
    pub source: String,
    /// The machine's name.
    pub machine: String,
    /// The stock kernel.
    pub era: String,
    /// Ticks per second.
    pub hz: u32,
    /// The seed that brings this report back.
    pub seed: u64,
    /// The arms that were simulated and their modes.
    pub arms: Vec<ArmModes>,
    /// In the order of the tables.
    pub cells: Vec<CellReport>,
    /// The cells counted.
    pub summary: Summary,
}

/// An arm's name and modes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArmModes {
    /// Its name.
    pub name: String,
    /// As `--set` takes them.
    pub modes: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Calibration, Effort};

    fn cell(delta_pct: f64, sd_pct: Option<f64>, calibration: bool) -> Cell {
        Cell {
            benchmark: "b".to_string(),
            place: "w".to_string(),
            row: "n=1".to_string(),
            unit: "u".to_string(),
            workload: String::new(),
            score: None,
            effort: Effort {
                repetitions: 2,
                warmup_ns: 0,
                measure_ns: 1_000_000,
            },
            published: Published {
                baseline: 100.0,
                patched: None,
                delta_pct,
                sd_pct,
            },
            calibration: calibration.then(|| Calibration {
                columns: vec![BASELINE.to_string()],
                why: String::new(),
            }),
        }
    }
    use crate::model::BASELINE;

    fn scored(cell: &Cell, baseline: f64, patched: f64) -> CellReport {
        CellReport::new(
            cell,
            &["baseline", "patched"],
            &[vec![baseline; 2], vec![patched; 2]],
        )
    }

    #[test]
    fn within_is_three_points_or_twice_the_published_deviation() {
        assert!(scored(&cell(10.0, None, false), 100.0, 112.9).within);
        assert!(!scored(&cell(10.0, None, false), 100.0, 113.1).within);
        assert!(scored(&cell(10.0, Some(4.0), false), 100.0, 117.9).within);
        assert!(!scored(&cell(10.0, Some(1.0), false), 100.0, 113.1).within);
    }

    #[test]
    fn signs_count_beyond_three_percent_and_baselines_between_bounds() {
        let cells = [
            scored(&cell(3.1, None, false), 80.0, 81.0),
            scored(&cell(-3.1, None, false), 79.0, 81.0),
            scored(&cell(-2.9, None, false), 125.0, 126.0),
            scored(&cell(50.0, None, true), 100.0, 90.0),
        ];
        let expected = Summary {
            scored: 3,
            within: 1,
            sign_scored: 2,
            sign_agrees: 1,
            baseline_close: 2,
            baseline_rows: 3,
        };
        assert_eq!(Summary::of(&cells), expected);
    }
}

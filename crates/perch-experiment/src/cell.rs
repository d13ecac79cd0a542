// SPDX-License-Identifier: GPL-2.0-or-later
//! A cell of a table: the simulated figures beside the published ones. The field names are the keys of
//! the JSON that docs/formats.md describes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::null_is_nan;
use crate::judge::{Tolerance, Verdict, direction, judge};
use crate::model::Cell;
use crate::published::Published;
use crate::run::LoadRun;
use crate::statistic::Statistic;
use crate::stats::{Delta, ci95, spread};

/// A simulated baseline is close when it is within these multiples of the published one.
const CLOSE: std::ops::RangeInclusive<f64> = 0.8..=1.25;

/// The simulated figures of the two arms that are compared with the published columns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Simulated {
    /// The statistic of the row over the baseline arm's repetitions, in the cell's unit: where rows
    /// are workloads, their mean.
    pub baseline: f64,
    /// The same statistic over the patched arm's repetitions.
    pub patched: f64,
    /// The change from the baseline's statistic to the patched one, in percent of the baseline;
    /// null in JSON where the baseline is 0.
    #[serde(deserialize_with = "null_is_nan")]
    #[schemars(with = "Option<f64>")]
    pub delta_pct: f64,
    /// Half the width of the change's 95 % confidence interval, in percentage points; null where
    /// the repetitions are too few for one.
    pub ci95_pct: Option<f64>,
    /// The standard deviation of a sample over the baseline arm's repetitions, in the cell's unit;
    /// null for fewer than two, and where the row's statistic is not the mean.
    #[serde(default)]
    pub baseline_std: Option<f64>,
    /// The same over the patched arm's repetitions.
    #[serde(default)]
    pub patched_std: Option<f64>,
}

/// A further arm, which has no published figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmResult {
    /// The arm's name.
    pub arm: String,
    /// The row's statistic over the arm's repetitions, in the cell's unit; the mean in most tables.
    pub mean: f64,
    /// The change from the baseline, in percent of the baseline.
    #[serde(deserialize_with = "null_is_nan")]
    #[schemars(with = "Option<f64>")]
    pub delta_pct: f64,
    /// The same as [`Simulated::ci95_pct`], for this arm's change.
    pub ci95_pct: Option<f64>,
    /// The same as [`Simulated::baseline_std`], over this arm's repetitions.
    #[serde(default)]
    pub std: Option<f64>,
}

/// One row of one table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellReport {
    /// The benchmark.
    pub benchmark: String,
    /// The set of CPUs to which the benchmark was pinned, or the machine it ran on.
    #[serde(rename = "where")]
    pub place: String,
    /// The row's name.
    pub row: String,
    /// The unit of all figures but the percentages.
    pub unit: String,
    /// True where more is better.
    pub higher_is_better: bool,
    /// The name of the machine that was simulated.
    pub machine: String,
    /// The figures measured on hardware.
    pub published: Published,
    /// The simulated figures.
    pub simulated: Simulated,
    /// The simulated baseline over the published one; null where the published figures are relative
    /// to a baseline that nobody knows.
    pub baseline_ratio: Option<f64>,
    /// True where costs were fitted on this cell: tables show the cell and never score it.
    pub calibration: bool,
    /// The changes that count as the published one.
    #[serde(default)]
    pub tolerance: Option<Tolerance>,
    /// The number of simulations of each arm.
    #[serde(default)]
    pub repetitions: usize,
    /// Simulated time before anything was counted, in milliseconds.
    #[serde(default)]
    pub warmup_ms: f64,
    /// Simulated time that was counted, in milliseconds; of a workload that starts and stops its
    /// clock itself, the most that it was given.
    #[serde(default)]
    pub measure_ms: f64,
    /// The simulated time from the beginning of the run, in milliseconds, until which the score
    /// changed with time while it was measured, in the baseline or in the patched arm; at half of
    /// the measured time it may go on. None where it was steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transient_ms: Option<f64>,
    /// True where the effort was spent before the warm-up was as long as a verdict needs: then the
    /// cell is undecided.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_short: bool,
    /// The verdict on the simulated change with its interval.
    #[serde(default)]
    pub verdict: Verdict,
    /// The verdict on the direction of the simulated change with its interval; null where the
    /// published change is too small to have a direction.
    #[serde(default)]
    pub direction: Option<Verdict>,
    /// True where the simulated change without its interval lies within the tolerance.
    pub within: bool,
    /// True where both changes without their intervals have the same direction.
    pub sign_agrees: bool,
    /// The columns on which costs were fitted, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fitted: Vec<String>,
    /// The further arms, where the user asked for some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<ArmResult>,
}

impl CellReport {
    pub(crate) fn new(cell: &Cell, found: &LoadRun) -> CellReport {
        let (published, statistic) = (&cell.published, cell.statistic);
        let kept = found.kept.iter();
        let mut arms: Vec<Vec<f64>> =
            kept.map(|arm| arm.scores[cell.score].values.clone()).collect();
        if cell.judging.relative {
            // The source's figures are multiples of a baseline of 1 or 100.
            let unit = statistic.of(&arms[0]) / published.baseline;
            arms.iter_mut().flatten().for_each(|value| *value /= unit);
        }
        let (baseline, patched) = (&arms[0], &arms[1]);
        let change = |values: &[f64]| statistic.change(baseline, values, found.draws);
        // The deviation belongs to the mean: that of a maximum would take many runs of it.
        let std = |values: &[f64]| spread(values).filter(|_| statistic == Statistic::Mean);
        let changed = change(patched);
        let Delta { pct, ci95_pct } = changed;
        let further = found.arms.iter().zip(&arms).skip(2).map(|(arm, values)| {
            let Delta { pct, ci95_pct } = change(values);
            ArmResult {
                arm: arm.name.clone(),
                mean: statistic.of(values),
                delta_pct: pct,
                ci95_pct,
                std: std(values),
            }
        });
        let tolerance = Tolerance::of(published);
        let mut verdict = tolerance.judge(changed);
        let mut within = tolerance.has(pct);
        if let Some((off, published)) = cell.judging.within_rounded.zip(published.patched) {
            // A figure rounds to one that is at most `off` away.
            let (low, high) = (published - off - 0.5, published + off + 0.5);
            let figure = statistic.of(patched);
            within |= (figure.round() - published).abs() <= off;
            verdict = verdict.or(judge(figure, ci95(patched), low, high));
        }
        let mut direction = direction(published.delta_pct, changed);
        let transient_ms = found.transient_ms(cell.score);
        if found.is_short || transient_ms.is_some() {
            verdict = Verdict::Undecided;
            direction = direction.map(|_| Verdict::Undecided);
        }
        let baseline_ratio = statistic.of(baseline) / published.baseline;
        CellReport {
            benchmark: cell.benchmark.clone(),
            place: cell.place.clone(),
            row: cell.row.clone(),
            unit: found.load.scores[cell.score].unit.clone(),
            higher_is_better: found.described[cell.score].higher_is_better,
            machine: found.load.machine.name.clone(),
            published: published.clone(),
            simulated: Simulated {
                baseline: statistic.of(baseline),
                patched: statistic.of(patched),
                delta_pct: pct,
                ci95_pct,
                baseline_std: std(baseline),
                patched_std: std(patched),
            },
            baseline_ratio: (!cell.judging.relative).then_some(baseline_ratio),
            calibration: cell.calibration.is_some(),
            tolerance: Some(tolerance),
            repetitions: baseline.len(),
            warmup_ms: found.effort.warmup_ms(),
            measure_ms: found.effort.measure_ms(),
            transient_ms,
            verdict,
            is_short: found.is_short,
            direction,
            within,
            sign_agrees: pct * published.delta_pct > 0.0,
            fitted: cell.calibration.as_ref().map_or(Vec::new(), |fitted| fitted.columns.clone()),
            further: further.collect(),
        }
    }

    /// Returns true where both cells stand in one table: of one benchmark, place and unit.
    pub fn shares_table(&self, other: &CellReport) -> bool {
        (&self.benchmark, &self.place, &self.unit) == (&other.benchmark, &other.place, &other.unit)
    }

    /// Returns true where the direction of the cell's change counts.
    pub fn sign_is_scored(&self) -> bool {
        !self.calibration && self.direction.is_some()
    }

    /// Returns true where further repetitions may decide what these did not. They settle nothing.
    pub(crate) fn is_open(&self) -> bool {
        let verdicts = [Some(self.verdict), self.direction];
        !self.calibration
            && self.transient_ms.is_none()
            && verdicts.contains(&Some(Verdict::Undecided))
    }

    /// Returns true where the cell's baseline is close to the published one.
    pub fn baseline_is_close(&self) -> bool {
        self.baseline_ratio.is_some_and(|ratio| CLOSE.contains(&ratio))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arm::Arm;
    use crate::model::{BASELINE, Calibration, Effort, Judging, Load, Wanted};
    use crate::summary::Summary;
    use crate::testing::scored_by;
    use perch_policy::Era;
    use std::sync::Arc;

    fn cell(delta_pct: f64, sd_pct: Option<f64>, calibration: bool) -> Cell {
        Cell {
            benchmark: "b".to_string(),
            place: "w".to_string(),
            row: "n=1".to_string(),
            load: 0,
            score: 0,
            statistic: Statistic::Mean,
            published: Published {
                baseline: 100.0,
                patched: None,
                delta_pct,
                sd_pct,
                repeats: Vec::new(),
            },
            judging: Judging::default(),
            calibration: calibration
                .then(|| Calibration { columns: vec![BASELINE.to_string()], why: String::new() }),
        }
    }

    fn load() -> Load {
        Load {
            benchmark: "b".to_string(),
            place: "w".to_string(),
            row: Some("n=1".to_string()),
            machine: Arc::new(perch_machine::resolve("juno").unwrap()),
            workload: String::new(),
            scores: vec![Wanted { name: None, unit: "u".to_string() }],
            effort: Effort { repetitions: 2, warmup_ns: 0, measure_ns: 1_000_000 },
        }
    }

    fn scored(cell: &Cell, baseline: f64, patched: f64) -> CellReport {
        let (load, arm) = (load(), Arm::new("a", "off", Era::V7_2).unwrap());
        let arms = [&arm, &arm];
        let mut found = LoadRun::new(&load, load.effort, &arms, 1);
        for (index, value) in [baseline, baseline, patched, patched].into_iter().enumerate() {
            found.add(index, scored_by(value));
        }
        CellReport::new(cell, &found)
    }

    #[test]
    fn within_is_three_points_or_twice_the_published_deviation() {
        assert!(scored(&cell(10.0, None, false), 100.0, 112.9).within);
        assert!(!scored(&cell(10.0, None, false), 100.0, 113.1).within);
        assert!(scored(&cell(10.0, Some(4.0), false), 100.0, 117.9).within);
        assert!(!scored(&cell(10.0, Some(1.0), false), 100.0, 113.1).within);
    }

    /// The published figures are 29 -> 13 us, which is -55 %. A simulated 14.4 rounds to 14, which
    /// is one off, and the change is 4 points off.
    #[test]
    fn what_rounds_to_the_published_figure_is_within_where_figures_were_rounded() {
        let mut cell = cell(-55.17, None, false);
        cell.published = Published { baseline: 29.0, patched: Some(13.0), ..cell.published };
        assert!(!scored(&cell, 29.0, 14.4).within);
        cell.judging.within_rounded = Some(1.0);
        for (patched, within) in [(14.4, true), (11.5, true), (14.6, false), (11.4, false)] {
            assert_eq!(scored(&cell, 29.0, patched).within, within, "{patched}");
        }
        // The change is right though the figure is not.
        assert!(scored(&cell, 58.0, 26.0).within);
        // Without a published patched figure there is nothing to compare a rounded one with.
        cell.published.patched = None;
        assert!(!scored(&cell, 29.0, 14.4).within);
    }

    /// The source published baselines of 1 because it tells nobody the absolute ones.
    #[test]
    fn a_relative_cell_is_shown_as_multiples_and_has_no_baseline_to_be_close_to() {
        let mut cell = cell(-9.02, Some(6.47), false);
        cell.judging.relative = true;
        for unit in [100.0, 1.0] {
            cell.published.baseline = unit;
            let found = scored(&cell, 250.0, 225.0).simulated;
            assert_eq!((found.baseline, found.patched), (unit, 0.9 * unit));
        }
        let found = scored(&cell, 250.0, 225.0);
        assert!((found.simulated.delta_pct + 10.0).abs() < 1e-9);
        assert!(found.within && found.baseline_ratio.is_none() && !found.baseline_is_close());
        let summary = Summary::of(&[found]);
        assert_eq!((summary.scored, summary.baseline_rows), (1, 0));
    }

    #[test]
    fn signs_count_beyond_three_percent_and_baselines_between_bounds() {
        let cells = [
            scored(&cell(3.1, None, false), 80.0, 81.0),
            scored(&cell(-3.1, None, false), 79.0, 81.0),
            scored(&cell(-2.9, None, false), 125.0, 126.0),
            scored(&cell(50.0, None, true), 100.0, 90.0),
        ];
        // The values do not scatter, so all are decided.
        let expected = Summary {
            scored: 3,
            within: 1,
            agrees: 1,
            disagrees: 2,
            undecided: 0,
            sign_scored: 2,
            sign_agrees: 1,
            direction_agrees: 1,
            direction_disagrees: 1,
            direction_undecided: 0,
            baseline_close: 2,
            baseline_rows: 3,
        };
        assert_eq!(Summary::of(&cells), expected);
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The arms of a sweep against each other: what each gains over the baseline, and where it is best.

use perch_experiment::Statistic;
use perch_experiment::stats::{delta, mean};
use schemars::JsonSchema;
use serde::Serialize;
use toml::Value;

use super::Sweep;
use crate::error::SweepError;
use crate::simulation::ScoreFound;
use crate::store::Store;

/// A loss that counts, and a lead that counts, in percent; both must be beyond the noise as well.
const NEAR_PCT: f64 = 2.0;

/// One score of one load in all arms.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RankRow {
    /// The values of the axes but the arms', in the order of [`Ranking::axes`].
    #[schemars(with = "Vec<crate::simulation::OfMachine>")]
    pub point: Vec<Value>,
    /// The quantity.
    pub score: String,
    /// The unit.
    pub unit: String,
    /// True where more is better.
    pub higher_is_better: bool,
    /// What each arm has, in the order of [`Ranking::arms`].
    pub arms: Vec<ArmGain>,
}

/// What an arm has in a row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ArmGain {
    /// The mean over the repetitions.
    pub mean: f64,
    /// The change from the baseline in percent, positive where the arm is better.
    pub gain_pct: f64,
    /// Half the width of the gain's 95 % confidence interval, in percentage points; none for one
    /// repetition.
    pub ci95_pct: Option<f64>,
    /// True where no arm is better by more than 2 % and the noise.
    pub is_best: bool,
}

impl ArmGain {
    /// Returns true where the arm loses by more than 2 % and the noise.
    pub fn loses(&self) -> bool {
        self.gain_pct < -NEAR_PCT.max(self.ci95_pct.unwrap_or_default())
    }

    /// Returns true where the arm gains by more than 2 % and the noise.
    pub fn wins(&self) -> bool {
        self.gain_pct > NEAR_PCT.max(self.ci95_pct.unwrap_or_default())
    }
}

/// An arm over all rows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Standing {
    /// The arm.
    pub arm: String,
    /// Rows in which it gains by more than 2 % and the noise.
    pub wins: usize,
    /// Rows in which it loses by more than 2 % and the noise.
    pub losses: usize,
    /// Rows in which no arm is better by more than 2 % and the noise.
    pub best: usize,
    /// The median of its gains, in percent.
    pub median_pct: f64,
    /// The row in which it gains least; an index into [`Ranking::rows`].
    pub worst: usize,
}

/// All arms in all rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Ranking {
    /// The axes beside the arms.
    pub axes: Vec<String>,
    /// The arms.
    pub arms: Vec<String>,
    /// The arm that the others are compared with; an index into `arms`.
    pub baseline: usize,
    /// The rows that all arms have.
    pub rows: Vec<RankRow>,
    /// The points without a result.
    pub missing: usize,
}

impl Ranking {
    /// Returns how each arm stands in the rows that `take` lets through; nothing where it lets none.
    pub fn standings(&self, take: impl Fn(&RankRow) -> bool) -> Vec<Standing> {
        let rows: Vec<usize> = (0..self.rows.len())
            .filter(|&row| take(&self.rows[row]))
            .collect();
        let arms = self.arms.iter().enumerate();
        let standing = |(at, arm): (usize, &String)| {
            let of = |row: usize| self.rows[row].arms[at];
            let gains: Vec<f64> = rows.iter().map(|&row| of(row).gain_pct).collect();
            let count =
                |is: &dyn Fn(ArmGain) -> bool| rows.iter().filter(|&&row| is(of(row))).count();
            let worst = rows.iter().copied();
            let worst = worst.min_by(|&a, &b| of(a).gain_pct.total_cmp(&of(b).gain_pct))?;
            Some(Standing {
                arm: arm.clone(),
                wins: count(&|arm| arm.wins()),
                losses: count(&|arm| arm.loses()),
                best: count(&|arm| arm.is_best),
                median_pct: Statistic::Percentile(50.0).of(&gains),
                worst,
            })
        };
        arms.filter_map(standing).collect()
    }
}

/// A point without its arm, and the scores of each arm.
type Load = (Vec<Value>, Vec<Option<Vec<ScoreFound>>>);

impl Sweep {
    /// Returns a ranking without rows: what a sweep has before anything is simulated.
    ///
    /// # Errors
    /// When the sweep has no arms, or no baseline.
    pub fn arms(&self) -> Result<Ranking, SweepError> {
        let axis = self.axes.iter().find(|axis| axis.name == "arm");
        let arms = axis.map_or_else(Vec::new, |axis| axis.labels.clone());
        let baseline = self.baseline.as_ref();
        let baseline = baseline.and_then(|name| arms.iter().position(|arm| arm == name));
        let baseline = baseline.ok_or_else(|| {
            let reason = "expected an axis `arm` and the arm to compare the others with";
            SweepError::key(&self.origin, "baseline", reason)
        })?;
        let others = self.names().into_iter().filter(|name| *name != "arm");
        Ok(Ranking {
            axes: others.map(str::to_string).collect(),
            arms,
            baseline,
            ..Ranking::default()
        })
    }

    /// Returns the arms against each other, by the scores that the sweep names, or else by the first
    /// score of each load.
    ///
    /// # Errors
    /// Those of [`Sweep::arms`], or when a result in the store is damaged.
    pub fn rank(&self, store: &Store) -> Result<Ranking, SweepError> {
        let mut ranking = self.arms()?;
        let at = self.names().iter().position(|name| *name == "arm");
        // The points of one load, in their order; the arm may be any of the axes.
        let mut loads: Vec<Load> = Vec::new();
        let mut places = std::collections::BTreeMap::new();
        for point in self.points() {
            let point = point?;
            let mut others = point.values;
            let arm = at.map(|at| others.remove(at));
            let place = *places.entry(format!("{others:?}")).or_insert_with(|| {
                loads.push((others, vec![None; ranking.arms.len()]));
                loads.len() - 1
            });
            let stored = store.get(&point.prepared.key)?;
            ranking.missing += usize::from(stored.is_none());
            let index = ranking
                .arms
                .iter()
                .position(|name| Some(name.as_str()) == arm.as_ref().and_then(Value::as_str));
            if let Some(index) = index {
                loads[place].1[index] = stored.map(|stored| stored.result.scores);
            }
        }
        for (point, found) in &loads {
            let Some(found) = found
                .iter()
                .map(Option::as_deref)
                .collect::<Option<Vec<_>>>()
            else {
                continue;
            };
            ranking.rows.extend(
                self.ranked_scores(found[ranking.baseline])
                    .filter_map(|score| rank_row(point, score, &found, ranking.baseline)),
            );
        }
        Ok(ranking)
    }

    /// Returns the scores of a load that count.
    fn ranked_scores<'a>(&self, of: &'a [ScoreFound]) -> impl Iterator<Item = &'a ScoreFound> {
        let named = |score: &&ScoreFound| self.scores.contains(&score.name);
        let mut scores: Vec<&ScoreFound> = of.iter().filter(named).collect();
        if scores.is_empty() {
            scores.extend(of.first());
        }
        scores.into_iter()
    }
}

/// Puts all arms side by side in one score; none where an arm does not have it.
fn rank_row(
    point: &[Value],
    score: &ScoreFound,
    found: &[&[ScoreFound]],
    base: usize,
) -> Option<RankRow> {
    let values: Option<Vec<&[f64]>> = found
        .iter()
        .map(|scores| {
            let same = scores.iter().find(|other| other.name == score.name)?;
            let whole = same.values.iter().all(|value| value.is_finite());
            (whole && !same.values.is_empty()).then_some(same.values.as_slice())
        })
        .collect();
    let values = values?;
    let sign = if score.higher_is_better { 1.0 } else { -1.0 };
    let gain = |from: &[f64], to: &[f64]| {
        // Repetitions of the same number share a seed.
        let both = from.len().min(to.len());
        let change = delta(&from[..both], &to[..both]);
        // No change of a score of which less is better is 0, too, and not -0.
        (sign * change.pct + 0.0, change.ci95_pct)
    };
    let best = values
        .iter()
        .copied()
        .max_by(|a, b| (sign * mean(a)).total_cmp(&(sign * mean(b))))?;
    let arms: Vec<ArmGain> = values
        .iter()
        .map(|&own| {
            let (gain_pct, ci95_pct) = gain(values[base], own);
            let (behind, noise) = gain(best, own);
            ArmGain {
                mean: mean(own),
                gain_pct,
                ci95_pct,
                is_best: behind >= -NEAR_PCT.max(noise.unwrap_or_default()),
            }
        })
        .collect();
    // A baseline of 0 has no changes.
    arms.iter()
        .all(|arm| arm.gain_pct.is_finite())
        .then(|| RankRow {
            point: point.to_vec(),
            score: score.name.clone(),
            unit: score.unit.clone(),
            higher_is_better: score.higher_is_better,
            arms,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(name: &str, higher_is_better: bool, values: &[f64]) -> ScoreFound {
        ScoreFound {
            name: name.to_string(),
            unit: "u".to_string(),
            higher_is_better,
            values: values.to_vec(),
            transient_ms: None,
        }
    }

    fn ranking(rows: &[(bool, [&[f64]; 3])]) -> Ranking {
        let rows = rows.iter().map(|(higher, arms)| {
            let found = arms.map(|values| vec![score("s", *higher, values)]);
            let found: Vec<&[ScoreFound]> = found.iter().map(Vec::as_slice).collect();
            rank_row(&[], &found[0][0], &found, 0).unwrap()
        });
        Ranking {
            arms: ["base", "a", "b"].map(str::to_string).to_vec(),
            rows: rows.collect(),
            ..Ranking::default()
        }
    }

    #[test]
    fn a_gain_is_what_is_better_whichever_way_the_score_counts() {
        let ranking = ranking(&[
            (true, [&[10.0, 10.0], &[11.0, 11.0], &[9.0, 9.0]]),
            (false, [&[10.0, 10.0], &[11.0, 11.0], &[9.0, 9.0]]),
        ]);
        let gains = |row: usize| {
            ranking.rows[row]
                .arms
                .iter()
                .map(|arm| arm.gain_pct.round())
        };
        assert_eq!(gains(0).collect::<Vec<_>>(), [0.0, 10.0, -10.0]);
        assert_eq!(gains(1).collect::<Vec<_>>(), [0.0, -10.0, 10.0]);
        let of = |at: usize| {
            let standing = &ranking.standings(|_| true)[at];
            (
                standing.wins,
                standing.losses,
                standing.best,
                standing.worst,
            )
        };
        assert_eq!(
            (of(0), of(1), of(2)),
            ((0, 0, 0, 0), (1, 1, 1, 1), (1, 1, 1, 0))
        );
        assert!(ranking.standings(|_| false).is_empty());
    }

    #[test]
    fn noise_and_two_percent_are_no_difference() {
        // a is 1 % behind for sure; b is 30 % behind in one repetition and ahead in the other.
        let ranking = ranking(&[(true, [&[100.0, 100.0], &[99.0, 99.0], &[70.0, 110.0]])]);
        let arms = &ranking.rows[0].arms;
        assert!(
            arms.iter()
                .all(|arm| arm.is_best && !arm.loses() && !arm.wins())
        );
        // Nor is a median moved by one row of three.
        let many = super::tests::ranking(&[
            (true, [&[1.0], &[1.5], &[1.0]]),
            (true, [&[1.0], &[1.1], &[1.0]]),
            (true, [&[1.0], &[0.2], &[1.0]]),
        ]);
        let standing = &many.standings(|_| true)[1];
        assert_eq!((standing.median_pct.round(), standing.worst), (10.0, 2));
    }

    #[test]
    fn a_score_that_an_arm_lacks_makes_no_row() {
        let none = score("s", true, &[f64::NAN]);
        let found = [&[score("s", true, &[1.0])][..], &[none][..]];
        assert_eq!(rank_row(&[], &found[0][0], &found, 0), None);
        let found = [
            &[score("s", true, &[0.0])][..],
            &[score("s", true, &[1.0])][..],
        ];
        assert_eq!(rank_row(&[], &found[0][0], &found, 0), None);
    }
}

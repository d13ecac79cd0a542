// SPDX-License-Identifier: GPL-2.0-or-later
//! The arms of a sweep against each other: what each gains over the baseline, and where it is best.

use schemars::JsonSchema;
use serde::Serialize;
use toml::Value;

use super::Sweep;
use crate::error::ExperimentError;
use crate::simulation::ScoreFound;
use crate::statistic::Statistic;
use crate::stats::{delta, mean};
use crate::store::Store;

/// The smallest difference that counts, in percent; it must be beyond the noise as well.
const NEAR_PCT: f64 = 2.0;

/// One score of one load in all arms.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RankRow {
    /// The values of the axes but the arms', in the order of [`ArmRanking::axes`].
    #[schemars(with = "Vec<crate::simulation::OfMachine>")]
    pub point: Vec<Value>,
    /// The quantity.
    pub score: String,
    /// The unit.
    pub unit: String,
    /// True where more is better.
    pub higher_is_better: bool,
    /// What each arm has, in the order of [`ArmRanking::arms`].
    pub arms: Vec<ArmGain>,
}

/// What a row says of an arm against the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RankVerdict {
    /// It is better by more than 2 % and the noise.
    Better,
    /// It is worse by more than 2 % and the noise.
    Worse,
    /// It is neither better nor worse by more than 2 %, the noise included.
    Level,
    /// The noise leaves open which of these it is, or there is one repetition and nobody knows it.
    Undecided,
    /// Time alone may still change the arm's score or the baseline's.
    NotSettled,
}

impl RankVerdict {
    /// All verdicts.
    pub const ALL: [RankVerdict; 5] = [
        RankVerdict::Better,
        RankVerdict::Worse,
        RankVerdict::Level,
        RankVerdict::Undecided,
        RankVerdict::NotSettled,
    ];

    /// Returns its name: `not settled`.
    pub fn name(self) -> &'static str {
        match self {
            RankVerdict::Better => "better",
            RankVerdict::Worse => "worse",
            RankVerdict::Level => "level",
            RankVerdict::Undecided => "undecided",
            RankVerdict::NotSettled => "not settled",
        }
    }

    /// Returns whether a row with this verdict counts for an arm or against it.
    pub fn counts(self) -> bool {
        !matches!(self, RankVerdict::Undecided | RankVerdict::NotSettled)
    }

    fn of(settled: bool, gain_pct: f64, ci95_pct: Option<f64>) -> RankVerdict {
        match ci95_pct {
            _ if !settled => RankVerdict::NotSettled,
            None => RankVerdict::Undecided,
            Some(half) if gain_pct > NEAR_PCT.max(half) => RankVerdict::Better,
            Some(half) if gain_pct < -NEAR_PCT.max(half) => RankVerdict::Worse,
            Some(half) if gain_pct.abs() + half <= NEAR_PCT => RankVerdict::Level,
            Some(_) => RankVerdict::Undecided,
        }
    }
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
    /// False where time alone may still change the arm's score.
    pub settled: bool,
    /// What the gain counts for.
    pub verdict: RankVerdict,
    /// True where the arm is settled and no settled arm is better by more than 2 % and the noise.
    pub is_best: bool,
}

/// An arm over all rows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Standing {
    /// The arm.
    pub arm: String,
    /// Rows in which it is better than the baseline.
    pub better: usize,
    /// Rows in which it is worse.
    pub worse: usize,
    /// Rows in which it is neither, for sure.
    pub level: usize,
    /// Rows in which the noise leaves open which of these it is.
    pub undecided: usize,
    /// Rows in which time alone may still change its score or the baseline's. They count for nothing
    /// else here.
    pub not_settled: usize,
    /// Rows in which it is settled and no settled arm is better by more than 2 % and the noise.
    pub best: usize,
    /// Rows in which it is settled.
    pub settled: usize,
    /// The median of its gains over the rows in which it is better, worse or level, in percent; none
    /// where there is none.
    pub median_pct: Option<f64>,
    /// The one of these rows in which it gains least; an index into [`ArmRanking::rows`].
    pub least: Option<usize>,
}

/// All arms in all rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ArmRanking {
    /// The axes beside the arms.
    pub axes: Vec<String>,
    /// The arms.
    pub arms: Vec<String>,
    /// The arm that the others are compared with; an index into `arms`.
    pub baseline: usize,
    /// How each arm stands over all rows.
    pub standings: Vec<Standing>,
    /// The rows that all arms have.
    pub rows: Vec<RankRow>,
    /// The points without a result.
    pub missing: usize,
}

impl ArmRanking {
    /// Returns how each arm stands in the rows that `take` lets through; nothing where it lets none.
    pub fn standings(&self, take: impl Fn(&RankRow) -> bool) -> Vec<Standing> {
        let rows: Vec<usize> = (0..self.rows.len()).filter(|&row| take(&self.rows[row])).collect();
        if rows.is_empty() {
            return Vec::new();
        }
        let arms = self.arms.iter().enumerate();
        let standing = |(at, arm): (usize, &String)| {
            let of = |row: usize| self.rows[row].arms[at];
            let count =
                |is: &dyn Fn(ArmGain) -> bool| rows.iter().filter(|&&row| is(of(row))).count();
            let with = |verdict| count(&|arm| arm.verdict == verdict);
            let counted: Vec<usize> =
                rows.iter().copied().filter(|&row| of(row).verdict.counts()).collect();
            let gains: Vec<f64> = counted.iter().map(|&row| of(row).gain_pct).collect();
            let least = |&a: &usize, &b: &usize| of(a).gain_pct.total_cmp(&of(b).gain_pct);
            Standing {
                arm: arm.clone(),
                better: with(RankVerdict::Better),
                worse: with(RankVerdict::Worse),
                level: with(RankVerdict::Level),
                undecided: with(RankVerdict::Undecided),
                not_settled: with(RankVerdict::NotSettled),
                best: count(&|arm| arm.is_best),
                settled: count(&|arm| arm.settled),
                median_pct: (!gains.is_empty()).then(|| Statistic::Percentile(50.0).of(&gains)),
                least: counted.into_iter().min_by(least),
            }
        };
        arms.map(standing).collect()
    }
}

/// A point without its arm, and the scores of each arm.
type Load = (Vec<Value>, Vec<Option<Vec<ScoreFound>>>);

impl Sweep {
    /// Returns a ranking without rows: what a sweep has before anything is simulated.
    ///
    /// # Errors
    /// When the sweep has no arms, or no baseline.
    pub fn arms(&self) -> Result<ArmRanking, ExperimentError> {
        let axis = self.axes.iter().find(|axis| axis.name == "arm");
        let arms = axis.map_or_else(Vec::new, |axis| axis.labels.clone());
        let baseline = self.baseline.as_ref();
        let baseline = baseline.and_then(|name| arms.iter().position(|arm| arm == name));
        let baseline = baseline.ok_or_else(|| {
            let reason = "expected an axis `arm` and the arm to compare the others with";
            ExperimentError::key(&self.origin, "baseline", reason)
        })?;
        let others = self.names().into_iter().filter(|name| *name != "arm");
        Ok(ArmRanking {
            axes: others.map(str::to_string).collect(),
            arms,
            baseline,
            ..ArmRanking::default()
        })
    }

    /// Returns the arms against each other, by the scores that the sweep names, or else by the first
    /// score of each load.
    ///
    /// # Errors
    /// Those of [`Sweep::arms`], or when a result in the store is damaged.
    pub fn rank(&self, store: &Store) -> Result<ArmRanking, ExperimentError> {
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
            let Some(found) = found.iter().map(Option::as_deref).collect::<Option<Vec<_>>>() else {
                continue;
            };
            ranking.rows.extend(
                self.ranked_scores(found[ranking.baseline])
                    .filter_map(|score| rank_row(point, score, &found, ranking.baseline)),
            );
        }
        ranking.standings = ranking.standings(|_| true);
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
    let scores: Option<Vec<&ScoreFound>> = found
        .iter()
        .map(|scores| {
            let same = scores.iter().find(|other| other.name == score.name)?;
            let whole = same.values.iter().all(|value| value.is_finite());
            (whole && !same.values.is_empty()).then_some(same)
        })
        .collect();
    // Where all are 0, nothing came to an end.
    let scores = scores.filter(|scores| scores.iter().any(|score| mean(&score.values) != 0.0))?;
    let sign = if score.higher_is_better { 1.0 } else { -1.0 };
    let gain = |from: &ScoreFound, to: &ScoreFound| {
        // Repetitions of the same number share a seed.
        let both = from.values.len().min(to.values.len());
        let change = delta(&from.values[..both], &to.values[..both]);
        // No change of a score of which less is better is 0, too, and not -0.
        (sign * change.pct + 0.0, change.ci95_pct)
    };
    let goodness = |score: &ScoreFound| sign * mean(&score.values);
    let settled = scores.iter().copied().filter(|score| score.settled);
    let best = settled.max_by(|a, b| goodness(a).total_cmp(&goodness(b)));
    let is_best = |own: &ScoreFound| {
        own.settled
            && best.is_some_and(|best| {
                let (behind, noise) = gain(best, own);
                behind >= -NEAR_PCT.max(noise.unwrap_or_default())
            })
    };
    let arms: Vec<ArmGain> = scores
        .iter()
        .map(|&own| {
            let (gain_pct, ci95_pct) = gain(scores[base], own);
            let both_settled = own.settled && scores[base].settled;
            ArmGain {
                mean: mean(&own.values),
                gain_pct,
                ci95_pct,
                settled: own.settled,
                verdict: RankVerdict::of(both_settled, gain_pct, ci95_pct),
                is_best: is_best(own),
            }
        })
        .collect();
    // A baseline of 0 has no changes.
    arms.iter().all(|arm| arm.gain_pct.is_finite()).then(|| RankRow {
        point: point.to_vec(),
        score: score.name.clone(),
        unit: score.unit.clone(),
        higher_is_better: score.higher_is_better,
        arms,
    })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn score(name: &str, higher_is_better: bool, values: &[f64]) -> ScoreFound {
        ScoreFound {
            name: name.to_string(),
            unit: "u".to_string(),
            higher_is_better,
            values: values.to_vec(),
            settled: true,
            transient_ms: None,
        }
    }

    /// Ranks rows of three arms, the first of which is the baseline.
    fn ranked(rows: Vec<[ScoreFound; 3]>) -> ArmRanking {
        let rows = rows.into_iter().filter_map(|arms| {
            let found = arms.map(|score| vec![score]);
            let found: Vec<&[ScoreFound]> = found.iter().map(Vec::as_slice).collect();
            rank_row(&[], &found[0][0], &found, 0)
        });
        ArmRanking {
            arms: ["base", "a", "b"].map(str::to_string).to_vec(),
            rows: rows.collect(),
            ..ArmRanking::default()
        }
    }

    fn ranking(rows: &[(bool, [&[f64]; 3])]) -> ArmRanking {
        let of = |(higher, arms): &(bool, [&[f64]; 3])| arms.map(|v| score("s", *higher, v));
        ranked(rows.iter().map(of).collect())
    }

    /// Better, worse, level, undecided, not settled, best.
    fn counts(standing: &Standing) -> [usize; 6] {
        [
            standing.better,
            standing.worse,
            standing.level,
            standing.undecided,
            standing.not_settled,
            standing.best,
        ]
    }

    #[test]
    fn a_gain_is_what_is_better_whichever_way_the_score_counts() {
        let ranking = ranking(&[
            (true, [&[10.0, 10.0], &[11.0, 11.0], &[9.0, 9.0]]),
            (false, [&[10.0, 10.0], &[11.0, 11.0], &[9.0, 9.0]]),
        ]);
        let gains = |row: usize| ranking.rows[row].arms.iter().map(|arm| arm.gain_pct.round());
        assert_eq!(gains(0).collect::<Vec<_>>(), [0.0, 10.0, -10.0]);
        assert_eq!(gains(1).collect::<Vec<_>>(), [0.0, -10.0, 10.0]);
        let standings = ranking.standings(|_| true);
        let found: Vec<_> =
            (standings.iter()).map(|standing| (counts(standing), standing.least)).collect();
        assert_eq!(
            found,
            [
                ([0, 0, 2, 0, 0, 0], Some(0)),
                ([1, 1, 0, 0, 0, 1], Some(1)),
                ([1, 1, 0, 0, 0, 1], Some(0))
            ]
        );
        assert!(ranking.standings(|_| false).is_empty());
    }

    #[test]
    fn noise_and_two_percent_are_no_difference() {
        // a is 1 % behind for sure; b is 30 % behind in one repetition and ahead in the other.
        let ranking = ranking(&[(true, [&[100.0, 100.0], &[99.0, 99.0], &[70.0, 110.0]])]);
        let arms = &ranking.rows[0].arms;
        assert!(arms.iter().all(|arm| arm.is_best));
        let verdicts: Vec<_> = arms.iter().map(|arm| arm.verdict).collect();
        let wanted = [RankVerdict::Level, RankVerdict::Level, RankVerdict::Undecided];
        assert_eq!(verdicts, wanted);
    }

    #[test]
    fn median_gain_is_not_moved_by_one_row_of_three() {
        let many = ranking(&[
            (true, [&[1.0, 1.0], &[1.5, 1.5], &[1.0, 1.0]]),
            (true, [&[1.0, 1.0], &[1.1, 1.1], &[1.0, 1.0]]),
            (true, [&[1.0, 1.0], &[0.2, 0.2], &[1.0, 1.0]]),
        ]);
        let standing = &many.standings(|_| true)[1];
        assert_eq!((standing.median_pct.map(f64::round), standing.least), (Some(10.0), Some(2)));
    }

    #[test]
    fn undecided_rows_are_in_no_median_and_are_no_worst_row() {
        let many = ranking(&[
            (true, [&[1.0, 1.0], &[1.1, 1.1], &[1.0, 1.0]]),
            (true, [&[1.0, 1.0], &[0.1, 1.1], &[1.0, 1.0]]),
        ]);
        let standing = &many.standings(|_| true)[1];
        assert_eq!(
            (standing.undecided, standing.median_pct.map(f64::round), standing.least),
            (1, Some(10.0), Some(0))
        );
    }

    #[test]
    fn what_is_0_in_all_arms_is_no_row() {
        let rows = ranking(&[(true, [&[0.0, 0.0]; 3])]).rows;
        assert_eq!(rows, []);
    }

    #[test]
    fn single_repetition_decides_nothing() {
        let ranking = ranking(&[(true, [&[1.0], &[9.0], &[0.1]])]);
        for standing in ranking.standings(|_| true) {
            assert_eq!(counts(&standing)[..5], [0, 0, 0, 1, 0], "{standing:?}");
        }
    }

    #[test]
    fn unsettled_row_is_neither_better_nor_worse_and_no_arms_best() {
        let row = |unsettled: usize| {
            let mut arms = [100.0, 200.0, 50.0].map(|value| score("s", true, &[value, value]));
            arms[unsettled].settled = false;
            ranked(vec![arms])
        };
        let of = |unsettled: usize| {
            let standings = row(unsettled).standings(|_| true);
            standings.iter().map(counts).collect::<Vec<_>>()
        };
        let nothing = [0, 0, 0, 0, 1, 0];
        // Without a settled baseline nobody has a gain; among the others a is best all the same.
        assert_eq!(of(0), [nothing, [0, 0, 0, 0, 1, 1], nothing]);
        // Twice the baseline's score, but who knows for how long: the baseline is best of the others.
        assert_eq!(of(1), [[0, 0, 1, 0, 0, 1], nothing, [0, 1, 0, 0, 0, 0]]);
        let standing = &row(1).standings(|_| true)[1];
        assert_eq!((standing.settled, standing.median_pct, standing.least), (0, None, None));
    }

    #[test]
    fn a_score_that_an_arm_lacks_makes_no_row() {
        let none = score("s", true, &[f64::NAN]);
        let found = [&[score("s", true, &[1.0])][..], &[none][..]];
        assert_eq!(rank_row(&[], &found[0][0], &found, 0), None);
        let found = [&[score("s", true, &[0.0])][..], &[score("s", true, &[1.0])][..]];
        assert_eq!(rank_row(&[], &found[0][0], &found, 0), None);
    }

    fn stored() -> impl Strategy<Value = ScoreFound> {
        let value = prop_oneof![Just(f64::NAN), Just(0.0), 90.0..110.0, -1e9..1e9];
        (vec(value, 0..6), any::<bool>(), any::<bool>()).prop_map(|(values, higher, settled)| {
            ScoreFound { settled, ..score("s", higher, &values) }
        })
    }

    proptest! {
        #[test]
        fn every_row_counts_once(rows in vec([stored(), stored(), stored()], 0..12)) {
            let ranking = ranked(rows);
            for standing in ranking.standings(|_| true) {
                let all: usize = counts(&standing)[..5].iter().sum();
                prop_assert_eq!(all, ranking.rows.len());
                prop_assert!(standing.best <= standing.settled);
            }
            for arm in ranking.rows.iter().flat_map(|row| &row.arms) {
                let counts = [RankVerdict::Better, RankVerdict::Worse].contains(&arm.verdict);
                let wide = arm.ci95_pct.is_none_or(|half| half >= arm.gain_pct.abs());
                prop_assert!(!counts || (arm.settled && !wide));
            }
        }
    }
}

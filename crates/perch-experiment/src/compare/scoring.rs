// SPDX-License-Identifier: GPL-2.0-or-later
//! The arms' entries of one score: means, intervals, changes from the first arm, statistics.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::{null_is_nan, nulls_are_nan};
use crate::statistic::{DESCRIBE, Statistic};
use crate::stats::{Delta, ci95, delta, mean, spread};

/// One arm's score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmScore {
    /// The arm's name.
    pub arm: String,
    /// The mean over the repetitions, in the score's unit; null in JSON where nothing happened that it
    /// could be made of.
    #[serde(deserialize_with = "null_is_nan")]
    #[schemars(with = "Option<f64>")]
    pub mean: f64,
    /// Half the width of the mean's 95 % confidence interval, in the score's unit; null for fewer
    /// than two repetitions.
    pub ci95: Option<f64>,
    /// The standard deviation of a sample over the repetitions, in the score's unit; null for fewer
    /// than two.
    #[serde(default)]
    pub std: Option<f64>,
    /// The change from the first arm, in percent of the first arm's mean.
    #[serde(deserialize_with = "null_is_nan")]
    #[schemars(with = "Option<f64>")]
    pub delta_pct: f64,
    /// Half the width of the change's 95 % confidence interval, in percentage points.
    pub delta_ci95_pct: Option<f64>,
    /// The simulated time, from the beginning of the run and in milliseconds, until which the score
    /// changed with time while it was measured; at half of the measured time it may go on. None
    /// where the score was steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transient_ms: Option<f64>,
    /// The score's mean over the repetitions in each of the equal parts of the measured time, in the
    /// score's unit; null where nothing happened that it could be made of. Of a percentile the parts' own
    /// percentiles, whose mean is not the whole's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<Option<f64>>,
    /// The statistics of [`DESCRIBE`], where the caller asked for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statistics: Vec<StatisticScore>,
    /// The score's value in each repetition, in the score's unit, where the caller asked for
    /// statistics; repetitions of the same number share a seed in all arms.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "nulls_are_nan")]
    #[schemars(with = "Vec<Option<f64>>")]
    pub iterations: Vec<f64>,
}

/// The value of one statistic over an arm's repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatisticScore {
    /// The statistic's name.
    pub statistic: String,
    /// The value, in the score's unit; null in JSON where an iteration has none.
    #[serde(deserialize_with = "null_is_nan")]
    #[schemars(with = "Option<f64>")]
    pub value: f64,
    /// The change from the first arm, in percent of the first arm's value; null in JSON where that
    /// value is 0.
    #[serde(deserialize_with = "null_is_nan")]
    #[schemars(with = "Option<f64>")]
    pub delta_pct: f64,
    /// Half the width of the change's 95 % confidence interval, in percentage points; null where
    /// the repetitions are too few for one.
    pub delta_ci95_pct: Option<f64>,
}

/// Makes each arm's entry of one score. `values` has each arm's values, one a repetition, at least
/// one. Where `statistics` is true, an entry also has those of [`DESCRIBE`], whose bootstrap draws
/// from `draws`.
pub(super) fn arm_scores<'a>(
    arms: impl Iterator<Item = &'a str>,
    values: Vec<Vec<f64>>,
    statistics: bool,
    draws: u64,
) -> Vec<ArmScore> {
    let first = values[0].clone();
    let scores = arms.zip(values).map(|(arm, values)| {
        let Delta { pct, ci95_pct } = delta(&first, &values);
        let describe = |statistic: &Statistic| {
            let change = statistic.change(&first, &values, draws);
            StatisticScore {
                statistic: statistic.to_string(),
                value: statistic.of(&values),
                delta_pct: change.pct,
                delta_ci95_pct: change.ci95_pct,
            }
        };
        let asked = if statistics { &DESCRIBE[..] } else { &[] };
        ArmScore {
            arm: arm.to_string(),
            mean: mean(&values),
            ci95: ci95(&values),
            std: spread(&values),
            delta_pct: pct,
            delta_ci95_pct: ci95_pct,
            transient_ms: None,
            course: Vec::new(),
            statistics: asked.iter().map(describe).collect(),
            iterations: values,
        }
    });
    scores.collect()
}

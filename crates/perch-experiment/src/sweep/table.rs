// SPDX-License-Identifier: GPL-2.0-or-later
//! The table of a sweep: each score at each point, and its change from the baseline.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::{Point, Sweep};
use crate::compare::Unsettled;
use crate::error::ExperimentError;
use crate::simulation::{Found, Key, OfMachine, ScoreFound};
use crate::stats::{ci95, delta, mean};
use crate::store::Store;

/// One score at one point of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SweepRow {
    /// The values of the axes, by their names.
    #[schemars(with = "BTreeMap<String, OfMachine>")]
    pub point: BTreeMap<String, toml::Value>,
    /// The quantity.
    pub score: String,
    /// Its unit.
    pub unit: String,
    /// True where more is better.
    pub higher_is_better: bool,
    /// The number of repetitions.
    pub repetitions: usize,
    /// Their mean; null where nothing happened that the score could be made of.
    #[schemars(with = "Option<f64>")]
    pub mean: f64,
    /// Half the width of the mean's 95 % interval; null for one repetition.
    pub ci95: Option<f64>,
    /// False where time alone may still change the score or the baseline's.
    pub settled: bool,
    /// The reason why it is not settled; null where it is.
    pub why_not_settled: Option<String>,
    /// The change from the baseline at the same values of the other axes, in percent; null without a
    /// baseline.
    pub change_pct: Option<f64>,
    /// Half the width of the change's 95 % interval, in percentage points.
    pub change_ci95_pct: Option<f64>,
}

impl Sweep {
    /// Returns the table of the points whose results are there, and the number of points without.
    ///
    /// # Errors
    /// When a result in the store is damaged.
    pub fn collect(&self, store: &Store) -> Result<(Vec<SweepRow>, usize), ExperimentError> {
        let points: Vec<Point> = self.points().collect::<Result<_, _>>()?;
        let arm = self.names().iter().position(|name| *name == "arm");
        let baselines = self.baselines(&points, arm);
        let kept: BTreeSet<&Key> = baselines.values().collect();
        let mut known: BTreeMap<Key, Found> = BTreeMap::new();
        let mut rows = Vec::new();
        let mut missing = 0;
        let mut read = |key: &Key| -> Result<Option<Found>, ExperimentError> {
            if let Some(found) = known.get(key) {
                return Ok(Some(found.clone()));
            }
            let stored = store.get(key)?;
            let found = stored.map(|stored| stored.result);
            // Only baselines are asked for again.
            if let Some(found) = &found
                && kept.contains(key)
            {
                known.insert(key.clone(), found.clone());
            }
            Ok(found)
        };
        for point in &points {
            let Some(found) = read(&point.prepared.key)? else {
                missing += 1;
                continue;
            };
            let base = match baselines.get(&others(point, arm)) {
                Some(key) => read(key)?,
                None => None,
            };
            rows.extend(found.scores.iter().map(|score| {
                let same = base.as_ref().and_then(|base| base.score(&score.name));
                let of_base =
                    (base.as_ref().zip(same)).and_then(|(base, same)| base.unsettled(same));
                row(self.named(point), score, same, found.unsettled(score).or(of_base))
            }));
        }
        Ok((rows, missing))
    }

    /// Returns the values of a point by the names of the axes.
    fn named(&self, point: &Point) -> BTreeMap<String, toml::Value> {
        let names = self.names().into_iter().map(str::to_string);
        names.zip(point.values.iter().cloned()).collect()
    }

    /// Returns the baseline's key by the values of the other axes.
    fn baselines(&self, points: &[Point], arm: Option<usize>) -> BTreeMap<String, Key> {
        let (Some(at), Some(baseline)) = (arm, &self.baseline) else {
            return BTreeMap::new();
        };
        let is_base = |point: &&Point| point.values[at].as_str() == Some(baseline);
        let base = points.iter().filter(is_base);
        base.map(|point| (others(point, arm), point.prepared.key.clone())).collect()
    }
}

/// Returns a name for the values of all axes but the arm's.
fn others(point: &Point, arm: Option<usize>) -> String {
    let values = point.values.iter().enumerate();
    let values = values.filter(|(index, _)| Some(*index) != arm);
    let values: Vec<String> = values.map(|(_, value)| value.to_string()).collect();
    values.join(" ")
}

fn row(
    point: BTreeMap<String, toml::Value>,
    score: &ScoreFound,
    base: Option<&ScoreFound>,
    unsettled: Option<Unsettled>,
) -> SweepRow {
    let change = base.map(|base| {
        // Repetitions of the same number share a seed.
        let both = base.values.len().min(score.values.len());
        delta(&base.values[..both], &score.values[..both])
    });
    SweepRow {
        point,
        score: score.name.clone(),
        unit: score.unit.clone(),
        higher_is_better: score.higher_is_better,
        repetitions: score.values.len(),
        mean: mean(&score.values),
        ci95: ci95(&score.values),
        settled: unsettled.is_none(),
        why_not_settled: unsettled.map(|why| why.to_string()),
        change_pct: change.as_ref().map(|change| change.pct),
        change_ci95_pct: change.and_then(|change| change.ci95_pct),
    }
}

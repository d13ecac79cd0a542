// SPDX-License-Identifier: GPL-2.0-or-later
//! Two comparisons of the same question set side by side: what an old build or kernel answered, and
//! what a new one answers.

use schemars::JsonSchema;
use serde::Serialize;

use crate::compare::{ArmScore, Comparison, CountRow, ScoreRow};
use crate::gate::Change;
use crate::report::ArmModes;
use crate::stats::{Delta, Sample, welch};

/// The changes from an old comparison to a new one. The field names are the keys of the JSON that
/// docs/formats.md describes.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Diff {
    /// The new comparison's machine.
    pub machine: String,
    /// The new comparison's workload.
    pub workload: String,
    /// The new comparison's kernel.
    pub era: String,
    /// Repetitions per arm, old and new.
    pub repetitions: [u32; 2],
    /// The keys of the question that differ: of two questions nobody expects one answer.
    pub differs: Vec<Difference>,
    /// Everything else that is not in both, in words.
    pub notes: Vec<String>,
    /// The scores that both have, in the order of the new comparison.
    pub scores: Vec<ScoreDiff>,
    /// The counts that differ at all.
    pub counts: Vec<CountDiff>,
}

/// A key whose values differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Difference {
    /// The key.
    pub key: &'static str,
    /// Its old value; empty where there was none.
    pub old: String,
    /// Its new value.
    pub new: String,
}

/// One score of both comparisons.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ScoreDiff {
    /// The quantity that the score measures.
    pub name: String,
    /// The score's unit.
    pub unit: String,
    /// True where more is better.
    pub higher_is_better: bool,
    /// The arms that both comparisons have.
    pub arms: Vec<ArmDiff>,
}

/// One arm's score in both comparisons.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ArmDiff {
    /// The arm's name.
    pub arm: String,
    /// The old mean, in the score's unit.
    pub old: f64,
    /// Half the width of the old mean's 95 % interval.
    pub old_ci95: Option<f64>,
    /// The new mean.
    pub new: f64,
    /// Half the width of the new mean's 95 % interval.
    pub new_ci95: Option<f64>,
    /// The change, in percent of the old mean; null in JSON where only that is 0.
    #[schemars(with = "Option<f64>")]
    pub delta_pct: f64,
    /// Half the width of the change's 95 % interval, in percentage points.
    pub delta_ci95_pct: Option<f64>,
}

/// The rate of one event that differs, per simulated second.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CountDiff {
    /// The list that the event is counted in, by its key in the JSON of a comparison.
    pub kind: &'static str,
    /// The event's name.
    pub name: String,
    /// The arm's name.
    pub arm: String,
    /// The old rate; 0 where the event did not occur.
    pub old: f64,
    /// The new rate.
    pub new: f64,
    /// The change, in percent of the old rate; null in JSON where that is 0.
    #[schemars(with = "Option<f64>")]
    pub delta_pct: f64,
}

impl Diff {
    /// Sets two comparisons side by side.
    pub fn of(old: &Comparison, new: &Comparison) -> Diff {
        let arms = common_arms(old, new);
        let mut notes = notes(old, new);
        let mut scores = Vec::new();
        for row in &new.scores {
            let is_same = |was: &&ScoreRow| was.name == row.name && was.unit == row.unit;
            match old.scores.iter().find(is_same) {
                None => notes.push(format!("only the new result has {} ({})", row.name, row.unit)),
                Some(was) => scores.push(score_diff((old, was), (new, row), &arms)),
            }
        }
        for was in &old.scores {
            let is_same = |row: &ScoreRow| was.name == row.name && was.unit == row.unit;
            if !new.scores.iter().any(is_same) {
                notes.push(format!("only the old result has {} ({})", was.name, was.unit));
            }
        }
        Diff {
            machine: new.machine.clone(),
            workload: new.workload.clone(),
            era: new.era.clone(),
            repetitions: [old.repetitions, new.repetitions],
            differs: differs(old, new),
            notes,
            scores,
            counts: counts(old, new, &arms),
        }
    }

    /// Returns the changes of all arms, score by score.
    pub fn changes(&self) -> Vec<Change<'_>> {
        let rows = self.scores.iter().flat_map(|row| {
            row.arms.iter().map(|arm| Change {
                arm: &arm.arm,
                score: &row.name,
                pct: arm.delta_pct,
                ci95_pct: arm.delta_ci95_pct,
                // Both are of the same moments, whatever comes after them.
                settled: true,
            })
        });
        rows.collect()
    }
}

/// Returns the indices of each arm that both comparisons have, old and new.
fn common_arms(old: &Comparison, new: &Comparison) -> Vec<(usize, usize)> {
    let index = |name: &str| old.arms.iter().position(|arm| arm.name == name);
    let arms = new.arms.iter().enumerate();
    arms.filter_map(|(to, arm)| Some((index(&arm.name)?, to))).collect()
}

/// Compares the keys of the question.
fn differs(old: &Comparison, new: &Comparison) -> Vec<Difference> {
    let keys = |one: &Comparison| {
        [
            ("machine", one.machine.clone()),
            ("place", one.place.clone().unwrap_or_default()),
            ("workload", one.workload.clone()),
            ("era", one.era.clone()),
            ("hz", one.hz.to_string()),
            ("root_domain", one.root_domain.clone().unwrap_or_default()),
        ]
    };
    Difference::of(keys(old), keys(new))
}

impl Difference {
    /// Returns the keys whose values differ.
    fn of<const N: usize>(
        old: [(&'static str, String); N],
        new: [(&'static str, String); N],
    ) -> Vec<Difference> {
        let both = old.into_iter().zip(new);
        let differing = both.filter(|(old, new)| old != new);
        differing.map(|((key, old), (_, new))| Difference { key, old, new }).collect()
    }
}

/// Says what else is not the same in both comparisons.
fn notes(old: &Comparison, new: &Comparison) -> Vec<String> {
    let mut notes = Vec::new();
    if old.machine == new.machine && old.machine_toml != new.machine_toml {
        notes.push(format!("the figures of machine {} differ", new.machine));
    }
    if old.window != new.window {
        let [from, to] = [old, new].map(|one| match &one.window {
            Some(window) => format!("{} ms + {} ms", window.warmup_ms, window.measure_ms),
            None => "none".to_string(),
        });
        if from != to {
            notes.push(format!("warm-up and measured time were {from}, and are {to}"));
        }
    }
    for was in &old.kernels {
        let mut same_arm = new.kernels.iter().filter(|other| other.arm == was.arm);
        if let Some(other) = same_arm.find(|other| other.release != was.release) {
            notes.push(format!(
                "arm {} ran on Linux {}, and runs on {}",
                was.arm, was.release, other.release
            ));
        }
    }
    arm_notes(&old.arms, &new.arms, &mut notes);
    notes
}

/// Says which arms only one result has, and which have other modes.
fn arm_notes(old: &[ArmModes], new: &[ArmModes], notes: &mut Vec<String>) {
    for arm in old {
        match new.iter().find(|other| other.name == arm.name) {
            None => notes.push(format!("only the old result has arm {}", arm.name)),
            Some(other) if other.modes != arm.modes => notes.push(format!(
                "the modes of arm {} were {}, and are {}",
                arm.name, arm.modes, other.modes
            )),
            Some(_) => {}
        }
    }
    let is_new = |arm: &&ArmModes| old.iter().all(|other| other.name != arm.name);
    let added = new.iter().filter(is_new);
    notes.extend(added.map(|arm| format!("only the new result has arm {}", arm.name)));
}

fn score_diff(
    (old, was): (&Comparison, &ScoreRow),
    (new, row): (&Comparison, &ScoreRow),
    arms: &[(usize, usize)],
) -> ScoreDiff {
    let each = arms.iter().map(|&(from, to)| {
        let (from, to) = (&was.arms[from], &row.arms[to]);
        // Where a seed brings back the same figures to the last bit, it has brought back the same
        // repetitions, and none of them changed.
        let is_same = (from.mean, from.ci95, old.seed) == (to.mean, to.ci95, new.seed)
            && old.repetitions == new.repetitions;
        let Delta { pct, ci95_pct } = if is_same {
            Delta::none(new.repetitions as usize)
        } else {
            welch(sample(from, old), sample(to, new))
        };
        ArmDiff {
            arm: to.arm.clone(),
            old: from.mean,
            old_ci95: from.ci95,
            new: to.mean,
            new_ci95: to.ci95,
            delta_pct: pct,
            delta_ci95_pct: ci95_pct,
        }
    });
    ScoreDiff {
        name: row.name.clone(),
        unit: row.unit.clone(),
        higher_is_better: row.higher_is_better,
        arms: each.collect(),
    }
}

fn sample(arm: &ArmScore, of: &Comparison) -> Sample {
    Sample { mean: arm.mean, ci95: arm.ci95, n: of.repetitions as usize }
}

/// Lists the rates that differ, kind by kind; those that either result does not count are left out.
fn counts(old: &Comparison, new: &Comparison, arms: &[(usize, usize)]) -> Vec<CountDiff> {
    let mut all = Vec::new();
    for ((kind, was), (_, now)) in old.counted().into_iter().zip(new.counted()) {
        let gone = was.iter().filter(|row| rates(now, &row.name).is_none());
        for row in now.iter().chain(gone) {
            let (was, now) = (rates(was, &row.name), rates(now, &row.name));
            for &(from, to) in arms {
                let old_rate = was.map_or(Some(0.0), |rates| rates[from]);
                let new_rate = now.map_or(Some(0.0), |rates| rates[to]);
                let both = old_rate.zip(new_rate);
                if let Some((old_rate, new_rate)) = both.filter(|(old, new)| old != new) {
                    all.push(CountDiff {
                        kind,
                        name: row.name.clone(),
                        arm: new.arms[to].name.clone(),
                        old: old_rate,
                        new: new_rate,
                        delta_pct: 100.0 * (new_rate / old_rate - 1.0),
                    });
                }
            }
        }
    }
    all
}

fn rates<'a>(rows: &'a [CountRow], name: &str) -> Option<&'a [Option<f64>]> {
    let row = rows.iter().find(|row| row.name == name)?;
    Some(&row.per_second)
}

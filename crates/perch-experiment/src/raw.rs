// SPDX-License-Identifier: GPL-2.0-or-later
//! Every repetition's scores, from which tables and intervals are made.

use crate::arm::Arm;
use crate::cell::LoadResult;
use crate::compare::{CompareSpec, ScoreRow};
use crate::error::ExperimentError;
use crate::model::{Cell, Experiment};
use crate::seed::seed;

/// One score of one repetition of one arm. Repetitions of the same number share a seed in all arms.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Repetition<'a> {
    /// The experiment's name; none in a comparison.
    pub experiment: Option<&'a str>,
    /// The benchmark, as in [`Cell::benchmark`]; none in a comparison.
    pub benchmark: Option<&'a str>,
    /// The place, as in [`Cell::place`]; none in a comparison.
    #[serde(rename = "where")]
    pub place: Option<&'a str>,
    /// The row's name; none where the rows are statistics over these repetitions, and none in a
    /// comparison.
    pub row: Option<&'a str>,
    /// The machine's name.
    pub machine: &'a str,
    /// The workload, in the syntax of `perch compare`.
    pub workload: &'a str,
    /// The stock kernel.
    pub era: &'a str,
    /// The arm's name.
    pub arm: &'a str,
    /// The arm's modes.
    pub modes: &'a str,
    /// The repetition's number, from 0.
    pub repetition: u32,
    /// The seed of the repetition's simulation.
    pub seed: u64,
    /// The name of the score.
    pub score: &'a str,
    /// The unit of the value.
    pub unit: &'a str,
    /// True where more is better.
    pub higher_is_better: bool,
    /// The score; nothing in JSON where none was counted.
    #[schemars(with = "Option<f64>")]
    pub value: f64,
    /// The number by which the values were divided to make the table's figures: 1, except where the
    /// published figures are relative to a baseline that nobody knows.
    pub divisor: f64,
}

/// A function that takes each repetition. An error of the function ends the run, which returns that
/// error.
pub type Each<'a> = &'a mut dyn FnMut(&Repetition) -> Result<(), ExperimentError>;

/// Hands out the simulated scores of a load, as `cells` show them, score by score and arm by arm.
pub(crate) fn of_load(
    experiment: &Experiment,
    base: u64,
    arms: &[&Arm],
    found: &LoadResult,
    cells: &[&Cell],
    each: Each,
) -> Result<(), ExperimentError> {
    let (load, era) = (found.load, experiment.era.to_string());
    let modes: Vec<String> = arms.iter().map(|arm| arm.modes.to_string()).collect();
    let here = |cell: &&&Cell| std::ptr::eq(&experiment.loads[cell.load], load);
    for (score, what) in found.scores.iter().enumerate() {
        let mut shown: Vec<&Cell> = cells.iter().filter(here).copied().collect();
        shown.retain(|cell| cell.score == score);
        // Rows that are statistics of the same values share them, unless each has a divisor.
        let relative = shown.iter().any(|cell| cell.judging.relative);
        let shared = load.row.is_none() && load.scores.len() == 1 && !relative;
        shown.truncate(if shared { 1 } else { shown.len() });
        for cell in shown {
            let divisor = found.divisor(cell);
            for ((arm, values), modes) in found.arms.iter().zip(&modes) {
                for (repetition, &value) in (0..).zip(&values[score]) {
                    each(&Repetition {
                        experiment: Some(&experiment.name),
                        benchmark: Some(&load.benchmark),
                        place: Some(&load.place),
                        row: (!shared).then_some(&cell.row),
                        machine: &load.machine.name,
                        workload: &load.workload,
                        era: &era,
                        arm,
                        modes,
                        repetition,
                        seed: seed(base, &load.parts(), repetition),
                        score: &what.name,
                        unit: what.unit,
                        higher_is_better: what.higher_is_better,
                        value,
                        divisor,
                    })?;
                }
            }
        }
    }
    Ok(())
}

/// Hands out the scores that a comparison is made of, score by score and arm by arm.
pub(crate) fn of_comparison(
    spec: &CompareSpec,
    scores: &[ScoreRow],
    seed_of: &dyn Fn(u32) -> u64,
    each: Each,
) -> Result<(), ExperimentError> {
    let era = spec.era.to_string();
    for score in scores {
        for (found, arm) in score.arms.iter().zip(&spec.arms) {
            let modes = arm.modes.to_string();
            for (repetition, &value) in (0..).zip(&found.iterations) {
                each(&Repetition {
                    experiment: None,
                    benchmark: None,
                    place: None,
                    row: None,
                    machine: &spec.machine.name,
                    workload: &spec.workload,
                    era: &era,
                    arm: &arm.name,
                    modes: &modes,
                    repetition,
                    seed: seed_of(repetition),
                    score: &score.name,
                    unit: &score.unit,
                    higher_is_better: score.higher_is_better,
                    value,
                    divisor: 1.0,
                })?;
            }
        }
    }
    Ok(())
}

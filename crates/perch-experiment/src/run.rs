// SPDX-License-Identifier: GPL-2.0-only
//! Runs an experiment: every cell, arm and repetition is one simulation, and simulations run in
//! parallel.

use std::sync::Arc;

use perch_policy::{Policy, Topology};
use perch_sim::Scenario;
use perch_sim::workload::Workload;

use crate::error::ExperimentError;
use crate::glob;
use crate::model::{Arm, Cell, Effort, Experiment};
use crate::pool::{self, Progress};
use crate::report::{ArmModes, CellReport, Report, Summary};
use crate::seed::seed;

/// What a run may choose.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Instead of the experiment's seed.
    pub seed: Option<u64>,
    /// Instead of the experiment's repetitions, in every cell.
    pub repetitions: Option<u32>,
    /// Only cells whose `benchmark/where/row` match this pattern of `*` and `?`.
    pub only: Option<String>,
    /// Further arms by name; `all` for all that the experiment has.
    pub further: Vec<String>,
    /// Worker threads, at least 1. The report doesn't depend on them.
    pub jobs: usize,
}

/// One simulation.
#[derive(Clone, Copy, Debug)]
struct Trial<'a> {
    cell: &'a Cell,
    arm: &'a Arm,
    effort: Effort,
    seed: u64,
    repetition: u32,
}

/// Runs `experiment` on the simulator.
///
/// # Errors
/// [`ExperimentError::Argument`] when an option makes no sense, [`ExperimentError::Run`] when a
/// simulation fails or its score is not what the experiment asked for.
pub fn run(
    experiment: &Experiment,
    options: &RunOptions,
    progress: Progress,
) -> Result<Report, ExperimentError> {
    let topology = Topology::new(&experiment.machine);
    run_with(experiment, options, progress, |trial| {
        simulate(experiment, &topology, trial)
    })
}

/// The score of one simulation.
fn simulate(
    experiment: &Experiment,
    topology: &Arc<Topology>,
    trial: &Trial,
) -> Result<f64, ExperimentError> {
    let Trial {
        cell, arm, effort, ..
    } = trial;
    let failed = |reason: String| ExperimentError::Run {
        what: format!(
            "{}, arm {}, repetition {}",
            cell.path(),
            arm.name,
            trial.repetition
        ),
        reason,
    };
    let scenario = Scenario {
        machine: Arc::clone(&experiment.machine),
        topology: Arc::clone(topology),
        policy: Policy::new(experiment.era, arm.modes),
        hz: experiment.hz,
        workload: Workload::parse(&cell.workload, &experiment.machine)
            .map_err(|error| failed(error.to_string()))?,
        warmup_ns: effort.warmup_ns,
        measure_ns: effort.measure_ns,
        seed: trial.seed,
    };
    let outcome = scenario.run().map_err(|error| failed(error.to_string()))?;
    let wanted = |name: &str| cell.score.as_deref().is_none_or(|score| score == name);
    let Some(score) = outcome.scores.iter().find(|score| wanted(&score.name)) else {
        let names: Vec<&str> = outcome
            .scores
            .iter()
            .map(|score| score.name.as_str())
            .collect();
        let wanted = cell.score.as_deref().unwrap_or("any");
        return Err(failed(format!(
            "the workload has no score `{wanted}`; it has {}",
            names.join(", ")
        )));
    };
    if score.unit != cell.unit {
        return Err(failed(format!(
            "the workload scores in {}, the experiment in {}",
            score.unit, cell.unit
        )));
    }
    if !(score.value.is_finite() && score.value > 0.0) {
        return Err(failed(format!(
            "the score is {}; measure_ms is too short for this workload",
            score.value
        )));
    }
    Ok(score.value)
}

/// [`run()`], on whatever `simulate` is.
fn run_with(
    experiment: &Experiment,
    options: &RunOptions,
    progress: Progress,
    simulate: impl Fn(&Trial) -> Result<f64, ExperimentError> + Sync,
) -> Result<Report, ExperimentError> {
    let refuse = |reason: String| Err(ExperimentError::Argument(reason));
    if options.repetitions == Some(0) {
        return refuse("0 repetitions: expected at least 1".to_string());
    }
    if options.jobs == 0 {
        return refuse("0 jobs: expected at least 1".to_string());
    }
    let base = options.seed.unwrap_or(experiment.seed);
    let arms = chosen_arms(experiment, &options.further)?;
    let only = options.only.as_deref().unwrap_or("*");
    let cells: Vec<&Cell> = experiment
        .cells
        .iter()
        .filter(|cell| glob::matches(only, &cell.path()))
        .collect();
    if cells.is_empty() {
        let example = experiment.cells.first().map(Cell::path).unwrap_or_default();
        return refuse(format!(
            "no cell of {} matches `{only}`: expected a pattern for benchmark/where/row, \
             for example {example}",
            experiment.name
        ));
    }
    let mut trials = Vec::new();
    for &cell in &cells {
        let repetitions = options.repetitions.unwrap_or(cell.effort.repetitions);
        let effort = Effort {
            repetitions,
            ..cell.effort
        };
        for &arm in &arms {
            trials.extend((0..repetitions).map(|repetition| Trial {
                cell,
                arm,
                effort,
                seed: seed(base, &[&cell.benchmark, &cell.place, &cell.row], repetition),
                repetition,
            }));
        }
    }
    let order = longest_first(&trials, &cells);
    let values = pool::run(&order, options.jobs, progress, |index| {
        simulate(&trials[index])
    })?;

    let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
    let mut values = values.into_iter();
    let mut reports = Vec::new();
    for &cell in &cells {
        let repetitions = options.repetitions.unwrap_or(cell.effort.repetitions) as usize;
        let by_arm: Vec<Vec<f64>> = names
            .iter()
            .map(|_| values.by_ref().take(repetitions).collect())
            .collect();
        reports.push(CellReport::new(cell, &names, &by_arm));
    }
    Ok(Report {
        experiment: experiment.name.clone(),
        title: experiment.title.clone(),
        source: experiment.source.clone(),
        machine: experiment.machine.name.clone(),
        era: experiment.era.to_string(),
        hz: experiment.hz,
        seed: base,
        arms: arms
            .iter()
            .map(|arm| ArmModes {
                name: arm.name.clone(),
                modes: arm.modes.to_string(),
            })
            .collect(),
        summary: Summary::of(&reports),
        cells: reports,
    })
}

/// Baseline, patched, and the further arms asked for, in the experiment's order.
fn chosen_arms<'a>(
    experiment: &'a Experiment,
    further: &[String],
) -> Result<Vec<&'a Arm>, ExperimentError> {
    for name in further {
        if name != "all" && !experiment.arms.iter().any(|arm| arm.name == *name) {
            let known: Vec<&str> = experiment
                .arms
                .iter()
                .map(|arm| arm.name.as_str())
                .collect();
            return Err(ExperimentError::Argument(format!(
                "{} has no arm `{name}`: expected all, or any of {}",
                experiment.name,
                known.join(", ")
            )));
        }
    }
    let chosen = |(index, arm): &(usize, &Arm)| {
        *index < 2
            || further
                .iter()
                .any(|name| name == "all" || *name == arm.name)
    };
    Ok(experiment
        .arms
        .iter()
        .enumerate()
        .filter(chosen)
        .map(|(_, arm)| arm)
        .collect())
}

/// The trials in the order in which workers take them. Tables list their rows from the lightest
/// to the heaviest, so a cell's place in its table times its simulated time stands for its cost.
fn longest_first(trials: &[Trial], cells: &[&Cell]) -> Vec<usize> {
    let mut rank = 0;
    let mut table = None;
    let ranks: Vec<u64> = cells
        .iter()
        .map(|cell| {
            let this = Some((&cell.benchmark, &cell.place));
            rank = if this == table { rank + 1 } else { 1 };
            table = this;
            rank
        })
        .collect();
    let cost = |index: &usize| {
        let Trial { cell, effort, .. } = &trials[*index];
        let at = cells.iter().position(|other| std::ptr::eq(*other, *cell));
        at.map_or(0, |at| ranks[at]) * (effort.warmup_ns + effort.measure_ns)
    };
    let mut order: Vec<usize> = (0..trials.len()).collect();
    order.sort_by_cached_key(|index| std::cmp::Reverse(cost(index)));
    order
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs an experiment: every load, arm and repetition is one simulation, whichever rows it serves,
//! and simulations run in parallel.

mod kernel;
mod load;
mod queue;
mod shorten;

use perch_sim::workload::{Budget, Demand, Workload};

use crate::arm::Arm;
use crate::error::ExperimentError;
use crate::glob;
use crate::model::{Cell, Effort, Experiment, Load};
use crate::pool::{self, Progress};
use crate::report::{ArmModes, Report};
use crate::thoroughness::Thoroughness;
use kernel::{Kernel, Simulate, Topologies};
pub(crate) use load::LoadRun;
use queue::Queue;
use shorten::shorten;

/// The options of a run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The seed that replaces the experiment's seed.
    pub seed: Option<u64>,
    /// The number of repetitions that replaces the experiment's, for every load: then all loads have
    /// it, whether their cells are decided or not.
    pub repetitions: Option<u32>,
    /// How far to go on with loads whose cells are undecided.
    pub thoroughness: Thoroughness,
    /// A pattern of `*` and `?`: the run has only cells whose `benchmark/where/row` match it.
    pub only: Option<String>,
    /// The names of further arms; `all` for all that the experiment has.
    pub further: Vec<String>,
    /// The number of worker threads, at least 1. The report doesn't depend on it.
    pub jobs: usize,
    /// The memory that the run may take. Where fewer than `jobs` simulations fit into it at a time,
    /// fewer run.
    pub budget: Budget,
}

impl RunOptions {
    /// Returns true where loads are simulated for longer than the experiment says until their scores
    /// are steady, and further while a cell is undecided.
    pub fn settles(&self) -> bool {
        self.doublings() > 0
    }

    /// Returns the events that a row may spend at most; none where nothing bounds them.
    pub fn events_a_row(&self) -> Option<u64> {
        match self.repetitions {
            Some(_) => None,
            None => self.thoroughness.events_a_row(),
        }
    }

    /// Returns how often the times of a load may be doubled, and how often its repetitions.
    fn doublings(&self) -> u32 {
        match self.repetitions {
            Some(_) => 0,
            None => self.thoroughness.doublings(),
        }
    }

    /// Returns the greatest number of repetitions that a load may come to. Where rows are statistics,
    /// the number of iterations is part of what was measured: the greatest of a thousand is another
    /// figure than the greatest of a hundred.
    fn most(&self, load: &Load, effort: Effort) -> u32 {
        let doublings = load.row.as_ref().map_or(0, |_| self.doublings());
        effort.repetitions.saturating_mul(1 << doublings)
    }
}

/// Runs `experiment` on the simulator.
///
/// # Errors
/// Returns [`ExperimentError::Argument`] when an option makes no sense, and
/// [`ExperimentError::Run`] when a simulation fails or its score is not what the experiment asked
/// for.
pub fn run(
    experiment: &Experiment,
    options: &RunOptions,
    progress: Progress,
) -> Result<Report, ExperimentError> {
    let topologies = Topologies::of(experiment);
    let simulator = Kernel { experiment, topologies: &topologies, budget: options.budget };
    let mut report = run_with(experiment, options, progress, &simulator)?;
    let machines = topologies.machines();
    let ran = |name: &str| report.loads.iter().any(|load| load.machine == name);
    report.machines_toml =
        machines.filter(|machine| ran(&machine.name)).map(|machine| machine.to_toml()).collect();
    Ok(report)
}

/// Runs `experiment` like [`run()`], with `simulator` in place of the simulator.
fn run_with(
    experiment: &Experiment,
    options: &RunOptions,
    progress: Progress,
    simulator: &impl Simulate,
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
    let cells = chosen_cells(experiment, options)?;
    let mut loads = Vec::new();
    for (load, mut effort) in chosen_loads(experiment, &cells, options)? {
        if options.settles() && !effort.counts_the_beginning() {
            effort.warmup_ns = effort.warmup_ns.max(simulator.balancing_ns(load));
        }
        loads.push(LoadRun::new(load, effort, &arms, base));
    }
    let jobs = affordable(&loads, options)?;
    if let Some(events) = options.events_a_row() {
        shorten(&mut loads, events, jobs, simulator)?;
    }
    let mut queue = Queue::new(experiment, &cells, loads, options, progress);
    pool::run_lists(&mut queue, jobs, |trial| simulator.simulate(trial))?;
    let modes = |arm: &&Arm| ArmModes { name: arm.name.clone(), modes: arm.words() };
    Ok(queue.report(arms.iter().map(modes).collect(), base))
}

/// Returns the cells of the experiment that the options choose, at least one.
fn chosen_cells<'a>(
    experiment: &'a Experiment,
    options: &RunOptions,
) -> Result<Vec<&'a Cell>, ExperimentError> {
    let only = options.only.as_deref().unwrap_or("*");
    let matching = experiment.cells.iter();
    let cells: Vec<&Cell> = matching.filter(|cell| glob::matches(only, &cell.path())).collect();
    if cells.is_empty() {
        let example = experiment.cells.first().map(Cell::path).unwrap_or_default();
        return Err(ExperimentError::Argument(format!(
            "no cell of {} matches `{only}`: expected a pattern for benchmark/where/row, \
             for example {example}",
            experiment.name
        )));
    }
    Ok(cells)
}

/// Refuses repetitions whose scores are over the budget, and returns how many simulations may run
/// at a time within it.
fn affordable(loads: &[LoadRun], options: &RunOptions) -> Result<usize, ExperimentError> {
    let budget = options.budget;
    let of_load =
        |run: &LoadRun| u64::from(options.most(run.load, run.effort)) * run.arms.len() as u64;
    let kept = Demand { simulations: loads.iter().map(of_load).sum(), ..Demand::default() };
    let most = loads.iter().max_by_key(|run| run.effort.repetitions);
    let asked = most.map_or(String::new(), |LoadRun { load, arms, effort, .. }| {
        let Effort { repetitions, .. } = effort;
        format!("{}: repetitions={repetitions} and arms={}", load.path(), arms.len())
    });
    let refuse = |reason: String| ExperimentError::Argument(reason);
    (budget.check(&asked, kept)).map_err(|over| refuse(over.to_string()))?;
    let mut jobs = usize::try_from(kept.simulations).map_or(options.jobs, |n| options.jobs.min(n));
    for LoadRun { load, .. } in loads {
        let parsed = Workload::parse_within(&load.workload, &load.machine, budget);
        let workload = parsed.map_err(|error| refuse(format!("{}: {error}", load.path())))?;
        let each = Demand::of(&workload, load.machine.cpus.len());
        jobs = budget.at_a_time(jobs, each, kept);
    }
    Ok(jobs)
}

/// Returns the loads of `cells`, each once and with its effort under `options`.
fn chosen_loads<'a>(
    experiment: &'a Experiment,
    cells: &[&Cell],
    options: &RunOptions,
) -> Result<Vec<(&'a Load, Effort)>, ExperimentError> {
    let mut chosen: Vec<(&Load, Effort)> = Vec::new();
    for cell in cells {
        let load = &experiment.loads[cell.load];
        let repetitions = options.repetitions.unwrap_or(load.effort.repetitions);
        if repetitions < cell.statistic.least() {
            return Err(ExperimentError::Argument(format!(
                "{repetitions} repetition: {} is the {} over the repetitions, and one alone has \
                 none; expected at least {}, or --only for other rows",
                cell.path(),
                cell.statistic,
                cell.statistic.least()
            )));
        }
        if !chosen.iter().any(|(other, _)| std::ptr::eq(*other, load)) {
            let effort = Effort { repetitions, ..load.effort };
            chosen.push((load, effort));
        }
    }
    Ok(chosen)
}

/// Returns the baseline, the patched arm and the further arms that the user asked for, in the
/// experiment's order.
fn chosen_arms<'a>(
    experiment: &'a Experiment,
    further: &[String],
) -> Result<Vec<&'a Arm>, ExperimentError> {
    for name in further {
        if name != "all" && !experiment.arms.iter().any(|arm| arm.name == *name) {
            let known: Vec<&str> = experiment.arms.iter().map(|arm| arm.name.as_str()).collect();
            return Err(ExperimentError::Argument(format!(
                "{} has no arm `{name}`: expected all, or any of {}",
                experiment.name,
                known.join(", ")
            )));
        }
    }
    let chosen = |(index, arm): &(usize, &Arm)| {
        *index < 2 || further.iter().any(|name| name == "all" || *name == arm.name)
    };
    Ok(experiment.arms.iter().enumerate().filter(chosen).map(|(_, arm)| arm).collect())
}

#[cfg(test)]
mod tests;

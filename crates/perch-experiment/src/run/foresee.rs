// SPDX-License-Identifier: GPL-2.0-or-later
//! The time that a run will take on this machine, by a measured guess.

use std::time::Duration;

use super::plan::Batch;
use super::{
    RunOptions, Topologies, affordable, chosen_arms, chosen_cells, chosen_loads, scenario,
};
use crate::error::ExperimentError;
use crate::model::{Effort, Experiment};

/// Each load is tried for this part of its simulated time, and for twice as much, before anything else
/// and on one thread. Of the cluster scan at quick effort 40ths took 6.5 s, 80ths 2.4 s and 160ths 0.7 s,
/// and the guesses were 665, 637 and 488 s: the first milliseconds are cheaper than the rest.
const PART: u32 = 80;

/// Guesses the time that [`super::run`] takes with these options, by the clock of which `now` tells the
/// reading: from the time that two small parts of one simulation of each load take. The second is as
/// dear as all later parts; the first begins with tasks that are not there yet. The guess leaves out
/// what threads cost each other, longer times of loads that are not steady, and further repetitions of
/// loads that the first do not decide.
///
/// # Errors
/// Returns the errors of [`super::run`] for options that make no sense.
pub fn foresee(
    experiment: &Experiment,
    options: &RunOptions,
    now: &dyn Fn() -> Duration,
) -> Result<Duration, ExperimentError> {
    let arms = chosen_arms(experiment, &options.further)?;
    let cells = chosen_cells(experiment, options)?;
    let chosen = chosen_loads(experiment, &cells, options)?;
    let jobs = affordable(&chosen, &arms, options)?;
    let topologies = Topologies::of(experiment);
    let mut all = Duration::ZERO;
    for &(load, effort) in &chosen {
        let topology = topologies.get(&load.machine);
        let take = |parts: u64| {
            let simulated = (effort.warmup_ns + effort.measure_ns) / u64::from(PART);
            let one = Effort {
                repetitions: 1,
                warmup_ns: 0,
                measure_ns: (parts * simulated).max(1_000_000),
            };
            let only = Batch { load, effort: one, repetitions: 0..1 };
            let trial = only.trial(0, &arms, experiment.seed);
            let begin = now();
            // A part that is too short for a score has taken its time all the same. A workload that
            // cannot be simulated is named by the run itself.
            if let Ok(scenario) = scenario(experiment, topology, &trial, options.budget) {
                let _ = scenario.run();
            }
            now().saturating_sub(begin)
        };
        let (one, two) = (take(1), take(2));
        let simulations = effort.repetitions.saturating_mul(arms.len() as u32);
        all += (two + two.saturating_sub(one) * (PART - 2)) * simulations;
    }
    Ok(all / jobs as u32)
}

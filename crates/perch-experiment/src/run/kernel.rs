// SPDX-License-Identifier: GPL-2.0-or-later
//! The simulations of a run.

use std::fmt::Display;
use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{Policy, Topology};
use perch_sim::workload::{Budget, Workload, WorkloadError};
use perch_sim::{Outcome, Scenario, Score, balancing_ns};

use super::load::{Found, Trial};
use crate::arm::Arm;
use crate::error::ExperimentError;
use crate::model::{Effort, Experiment, Load, Wanted};
use crate::transient::BATCHES;

/// A simulator, as a run needs it.
pub(super) trait Simulate: Sync {
    /// Returns the scores of one simulation.
    fn simulate(&self, trial: &Trial) -> Result<Found, ExperimentError>;

    /// Returns the events of `ns` nanoseconds of a load soon after its beginning; none where it must not be shortened,
    /// because it starts and stops its clock itself, counts its beginning, or its number of iterations
    /// is part of what was measured.
    fn events(&self, _load: &Load, _arm: &Arm, _ns: u64) -> Result<Option<u64>, ExperimentError> {
        Ok(None)
    }

    /// Returns the longest time that may pass until the balancer has tried to move any task of a
    /// load, in nanoseconds; 0 for a load that starts and stops its clock itself.
    fn balancing_ns(&self, _load: &Load) -> u64 {
        0
    }
}

/// The kernel's view of every machine of an experiment, each made once.
pub(super) struct Topologies<'a>(Vec<(&'a Arc<Machine>, Arc<Topology>)>);

impl<'a> Topologies<'a> {
    pub fn of(experiment: &'a Experiment) -> Topologies<'a> {
        let mut topologies = Topologies(Vec::new());
        for Load { machine, .. } in &experiment.loads {
            if topologies.find(machine).is_none() {
                topologies.0.push((machine, Topology::new(machine)));
            }
        }
        topologies
    }

    /// Returns the machines, in the order in which loads name them.
    pub fn machines(&self) -> impl Iterator<Item = &Machine> {
        self.0.iter().map(|(machine, _)| machine.as_ref())
    }

    fn find(&self, machine: &Arc<Machine>) -> Option<&Arc<Topology>> {
        let same = |(other, _): &&(&Arc<Machine>, _)| Arc::ptr_eq(other, machine);
        self.0.iter().find(same).map(|(_, topology)| topology)
    }

    pub fn get(&self, machine: &Arc<Machine>) -> &Arc<Topology> {
        self.find(machine).expect("every load's machine is there")
    }
}

/// Returns one simulation, or the reason why its workload cannot be simulated.
pub(super) fn scenario(
    experiment: &Experiment,
    topology: &Arc<Topology>,
    trial: &Trial,
    budget: Budget,
) -> Result<Scenario, WorkloadError> {
    let Trial { load, arm, effort, .. } = trial;
    Ok(Scenario {
        machine: Arc::clone(&load.machine),
        topology: Arc::clone(topology),
        policy: Policy::new(experiment.era, arm.modes),
        hz: experiment.hz,
        root_domain: experiment.root_domain,
        scheduler: arm.scheduler.clone(),
        workload: Workload::parse_within(&load.workload, &load.machine, budget)?,
        warmup_ns: effort.warmup_ns,
        measure_ns: effort.measure_ns,
        seed: trial.seed,
    })
}

/// The simulated kernel of an experiment's era.
pub(super) struct Kernel<'a> {
    pub experiment: &'a Experiment,
    pub topologies: &'a Topologies<'a>,
    pub budget: Budget,
}

impl Simulate for Kernel<'_> {
    fn simulate(&self, trial: &Trial) -> Result<Found, ExperimentError> {
        let topology = self.topologies.get(&trial.load.machine);
        simulate(self.experiment, topology, trial, self.budget)
    }

    fn events(&self, load: &Load, arm: &Arm, ns: u64) -> Result<Option<u64>, ExperimentError> {
        let effort = Effort {
            repetitions: 1,
            // Of 256 tasks the last is born after some 80 ms, and before there is less to simulate.
            warmup_ns: 9 * ns,
            measure_ns: ns,
        };
        let trial = Trial { load, arm, effort, seed: 0, repetition: 0 };
        let topology = self.topologies.get(&load.machine);
        let scenario = scenario(self.experiment, topology, &trial, self.budget);
        let scenario = scenario.map_err(|error| trial.failed(&error))?;
        if load.row.is_none() || load.effort.counts_the_beginning() || scenario.workload.is_timed()
        {
            return Ok(None);
        }
        let outcome = scenario.run().map_err(|error| trial.failed(&error))?;
        Ok(Some(outcome.metrics.events))
    }

    fn balancing_ns(&self, load: &Load) -> u64 {
        let topology = self.topologies.get(&load.machine);
        // A workload that does not parse is refused where it is run.
        match Workload::parse_within(&load.workload, &load.machine, self.budget) {
            Ok(workload) if !workload.is_timed() => {
                balancing_ns(self.experiment.era, topology, &workload)
            }
            _ => 0,
        }
    }
}

/// Returns the scores of one simulation.
fn simulate(
    experiment: &Experiment,
    topology: &Arc<Topology>,
    trial: &Trial,
    budget: Budget,
) -> Result<Found, ExperimentError> {
    let load = trial.load;
    let failed = |reason: &dyn Display| trial.failed(reason);
    let scenario = scenario(experiment, topology, trial, budget).map_err(|error| failed(&error))?;
    let run = scenario.run_in_batches(BATCHES);
    let (mut outcome, mut batches) = run.map_err(|error| failed(&error))?;
    let scores = load.scores.iter().enumerate();
    let places = scores.map(|(index, wanted)| {
        let cells = || experiment.cells.iter().filter(|cell| cell.score == index);
        let mut cells = cells().filter(|cell| std::ptr::eq(&experiment.loads[cell.load], load));
        let relative = cells.any(|cell| cell.judging.relative);
        place(&outcome, wanted, relative).map_err(|error| failed(&error))
    });
    let places = places.collect::<Result<Vec<usize>, _>>()?;
    outcome.scores = places.iter().map(|&at| outcome.scores[at].clone()).collect();
    for batch in &mut batches {
        batch.scores = places.iter().map(|&at| batch.scores[at]).collect();
    }
    Ok((outcome, batches))
}

/// The reason why the score that a cell wants is not among those of its workload.
#[derive(Debug, thiserror::Error)]
enum ScoreError {
    #[error("the workload has no score `{0}`; it has {1}")]
    Name(String, String),
    #[error("the workload scores in {0}, the experiment in {1}")]
    Unit(&'static str, String),
    #[error("the score {0} is {1}; measure_ms is too short for this workload")]
    Value(String, f64),
}

/// Returns the place of the score that is `wanted` among those of `outcome`. A score that is shown
/// `relative` to another may be in any unit.
fn place(outcome: &Outcome, wanted: &Wanted, relative: bool) -> Result<usize, ScoreError> {
    let name = wanted.name.as_deref();
    let is_wanted = |score: &Score| name.is_none_or(|name| name == score.name);
    let Some(index) = outcome.scores.iter().position(is_wanted) else {
        let names: Vec<&str> = outcome.scores.iter().map(|score| score.name.as_str()).collect();
        let name = name.unwrap_or("any").to_string();
        return Err(ScoreError::Name(name, names.join(", ")));
    };
    let score = &outcome.scores[index];
    if score.unit != wanted.unit && !relative {
        return Err(ScoreError::Unit(score.unit, wanted.unit.clone()));
    }
    if !(score.value.is_finite() && score.value > 0.0) {
        return Err(ScoreError::Value(score.name.clone(), score.value));
    }
    Ok(index)
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The request for a comparison, its checks, and its repetitions.

use std::fmt::Display;
use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{Era, Policy, Topology};
use perch_sim::workload::{Budget, Demand, Workload};
use perch_sim::{RootDomain, Scenario};

use super::plan::Plan;
use crate::arm::Arm;
use crate::error::ExperimentError;
use crate::model::Effort;
use crate::seed::seed;
use crate::statistic::{DESCRIBE, Statistic};

/// The request for a comparison.
#[derive(Clone, Debug)]
pub struct CompareSpec {
    /// The machine.
    pub machine: Arc<Machine>,
    /// The machine as the kernel sees it: `Topology::new(&machine)`. Comparisons of one machine share
    /// it.
    pub topology: Arc<Topology>,
    /// The stock kernel.
    pub era: Era,
    /// Ticks of the kernel per second.
    pub hz: u32,
    /// The layout of that kernel's root domain.
    pub root_domain: RootDomain,
    /// The workload, in the syntax of `perch_sim::workload::Workload::parse`.
    pub workload: String,
    /// The arms, at least one; changes are from the first.
    pub arms: Vec<Arm>,
    /// The simulated time of each arm, and the number of repetitions.
    pub plan: Plan,
    /// True where every score is also described by its statistics over the repetitions.
    pub statistics: bool,
    /// The seed from which all other seeds are derived.
    pub seed: u64,
    /// The number of worker threads, at least 1.
    pub jobs: usize,
    /// The memory that the comparison may take. Where fewer than `jobs` simulations fit into it at
    /// a time, fewer run.
    pub budget: Budget,
}

/// Returns the parts that, beside the comparison's own seed, its simulations' seeds are derived
/// from.
pub(super) fn parts(spec: &CompareSpec) -> [&str; 3] {
    ["compare", &spec.machine.name, &spec.workload]
}

/// Returns a repetition of an arm.
pub(super) fn scenario(
    spec: &CompareSpec,
    arm: &Arm,
    repetition: usize,
    effort: Effort,
) -> Result<Scenario, ExperimentError> {
    let workload = Workload::parse_within(&spec.workload, &spec.machine, spec.budget);
    Ok(Scenario {
        machine: Arc::clone(&spec.machine),
        topology: Arc::clone(&spec.topology),
        policy: Policy::new(spec.era, arm.modes),
        hz: spec.hz,
        root_domain: spec.root_domain,
        scheduler: arm.scheduler.clone(),
        workload: workload.map_err(|error| failure(spec, arm, repetition, &error))?,
        warmup_ns: effort.warmup_ns,
        measure_ns: effort.measure_ns,
        seed: seed(spec.seed, &parts(spec), repetition as u32),
    })
}

/// Returns the error of a repetition.
pub(super) fn failure(
    spec: &CompareSpec,
    arm: &Arm,
    repetition: usize,
    reason: &dyn Display,
) -> ExperimentError {
    ExperimentError::run(&spec.workload, &arm.name, repetition, reason)
}

/// Refuses what makes no sense, and returns the workload.
pub(super) fn check(spec: &CompareSpec) -> Result<Workload, ExperimentError> {
    let refuse = |reason: String| Err(ExperimentError::Argument(reason));
    if spec.arms.is_empty() {
        return refuse("no arm: expected --arm NAME:MECHANISM=MODE at least once".to_string());
    }
    for (index, arm) in spec.arms.iter().enumerate() {
        if spec.arms[..index].iter().any(|other| other.name == arm.name) {
            return refuse(format!("there are two arms `{}`: give each its own name", arm.name));
        }
        if let Err(error) = spec.era.check(&arm.modes) {
            return refuse(format!("arm `{}`: {error}", arm.name));
        }
    }
    let measure_ns = match spec.plan {
        Plan::ByHand(effort) if effort.warmup_ns.max(effort.measure_ns) > Effort::LONGEST_NS => {
            return refuse("warm-up and measured time: expected at most an hour each".to_string());
        }
        Plan::ByHand(effort) => Some(effort.measure_ns),
        Plan::Until { .. } => None,
    };
    if spec.jobs == 0 || spec.plan.repetitions() == 0 || measure_ns == Some(0) {
        return refuse("jobs, repetitions and the measured time must be at least 1".to_string());
    }
    let least = DESCRIBE.map(Statistic::least).into_iter().max();
    if spec.statistics && Some(spec.plan.repetitions()) < least {
        return refuse(format!(
            "{} repetition has no standard deviation: expected at least 2 for statistics",
            spec.plan.repetitions()
        ));
    }
    if !(100..=1000).contains(&spec.hz) {
        return refuse(format!("{} ticks a second: expected 100 to 1000", spec.hz));
    }
    let parsed = Workload::parse_within(&spec.workload, &spec.machine, spec.budget);
    let argument = |reason: String| ExperimentError::Argument(reason);
    let workload = parsed.map_err(|error| argument(error.to_string()))?;
    let fits = workload.check(spec.era);
    fits.map_err(|error| argument(error.to_string()))?;
    Ok(workload)
}

/// Refuses repetitions whose scores are over the budget, and returns how many simulations may run
/// at a time within it.
pub(super) fn affordable(
    spec: &CompareSpec,
    workload: &Workload,
) -> Result<usize, ExperimentError> {
    let each = Demand::of(workload, spec.machine.cpus.len());
    let repetitions = u64::from(spec.plan.repetitions());
    let kept = Demand {
        simulations: repetitions.saturating_mul(spec.arms.len() as u64),
        ..Demand::default()
    };
    let asked = format!("repetitions={repetitions} and arms={}", spec.arms.len());
    let affordable = spec.budget.check(&asked, kept);
    affordable.map_err(|over| ExperimentError::Argument(over.to_string()))?;
    Ok(spec.budget.at_a_time(spec.jobs, each, kept))
}

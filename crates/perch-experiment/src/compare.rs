// SPDX-License-Identifier: GPL-2.0-or-later
//! A comparison puts arbitrary arms on one workload; it tells the scores of each arm and what each
//! arm did differently.

mod counts;
mod found;
mod measured;
mod scoring;

use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{CacheStep, Era, Policy, Reason, Topology};
use perch_sim::workload::{Budget, Demand, Workload, WorkloadError};
use perch_sim::{Outcome, RootDomain, Scenario, Score, Watch};
use serde::{Deserialize, Serialize};

use crate::contention::Contention;
use crate::error::ExperimentError;
use crate::model::{Arm, Effort};
use crate::pool::{self, Progress};
use crate::raw::{self, Each};
use crate::report::ArmModes;
use crate::seed::seed;
use crate::statistic::{DESCRIBE, Statistic};
use crate::tally::{ArmCpus, WakeLatency};

pub use counts::CountRow;
use counts::{Rates, chosen, counts, guests, totals};
pub(crate) use counts::{distances, occurred};
use found::ArmFound;
pub use measured::{MeasuredScore, MeasuredSpec, Measurement, compare_measured};
use scoring::arm_scores;
pub use scoring::{ArmScore, StatisticScore};

/// The request for a comparison.
#[derive(Clone, Debug)]
pub struct CompareSpec {
    /// The machine.
    pub machine: Arc<Machine>,
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
    pub effort: Effort,
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

/// One score of the workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreRow {
    /// The quantity that the score measures.
    pub name: String,
    /// The score's unit.
    pub unit: String,
    /// True where more is better.
    pub higher_is_better: bool,
    /// The score of each arm.
    pub arms: Vec<ArmScore>,
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The machine's name.
    pub machine: String,
    /// What ran the arms, in words, where that was not the simulator: `a guest of 8 CPUs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The workload.
    pub workload: String,
    /// The stock kernel.
    pub era: String,
    /// Ticks of the kernel per second; 0 where nobody knows them.
    pub hz: u32,
    /// The layout of that kernel's root domain, where it differs from the stock one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_domain: Option<String>,
    /// The seed that brings this comparison back.
    pub seed: u64,
    /// Simulations per arm.
    pub repetitions: u32,
    /// The arms and their modes; changes are from the first.
    pub arms: Vec<ArmModes>,
    /// Every score of the workload, and the mean time from wake-up to running.
    pub scores: Vec<ScoreRow>,
    /// The time that woken tasks waited until they ran, by arm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency: Vec<WakeLatency>,
    /// The time and the decisions of each CPU, by arm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<ArmCpus>,
    /// The whole machine, in the format that `-m` reads.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine_toml: String,
    /// The reasons for which CPUs were chosen; reasons that never occurred are left out.
    pub decisions: Vec<CountRow>,
    /// The CPUs that were chosen, where tasks are in groups; CPUs that were never chosen are left
    /// out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chosen: Vec<CountRow>,
    /// The cache mechanism's verdicts on decisions; verdicts that never occurred are left out, and
    /// the list is empty where the mechanism had nothing to say.
    pub cache: Vec<CountRow>,
    /// The distances from the waker to the chosen CPU; distances that never occurred are left out.
    pub wake_distance: Vec<CountRow>,
    /// The distances from a woken task's previous CPU to the chosen one; distances that never
    /// occurred are left out.
    pub migrations: Vec<CountRow>,
    /// The distances over which the balancer moved tasks; distances that never occurred are left
    /// out.
    pub balanced: Vec<CountRow>,
    /// The states and events of virtual machines; empty where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guests: Vec<CountRow>,
    /// All other counts.
    pub totals: Vec<CountRow>,
    /// The kernel's contended cache lines by arm; empty on a machine without figures for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contention: Vec<Contention>,
}

/// Runs a comparison.
///
/// # Errors
/// Returns [`ExperimentError::Argument`] when the arms, the workload or a number make no sense, and
/// [`ExperimentError::Run`] when a simulation fails.
pub fn compare(spec: &CompareSpec, progress: Progress) -> Result<Comparison, ExperimentError> {
    compare_raw(spec, progress, &mut |_| Ok(()))
}

/// Runs a comparison like [`compare`], and also hands every repetition's scores to `each`: the
/// scores that the means are made of.
///
/// # Errors
/// Returns the errors of [`compare`], and those of `each`.
pub fn compare_raw(
    spec: &CompareSpec,
    progress: Progress,
    each: Each,
) -> Result<Comparison, ExperimentError> {
    let workload = check(spec)?;
    let jobs = affordable(spec, &workload)?;
    let topology = Topology::new(&spec.machine);
    let repetitions = spec.effort.repetitions as usize;
    let parts = parts(spec);
    let mut found: Vec<ArmFound> = spec.arms.iter().map(|_| ArmFound::default()).collect();
    let mut described: Vec<Score> = Vec::new();
    let run = |index| {
        let (arm, repetition) = (&spec.arms[index / repetitions], index % repetitions);
        let failed = |reason: String| failure(spec, arm, repetition, reason);
        let scenario = scenario(spec, &topology, arm, repetition);
        let scenario = scenario.map_err(|error| failed(error.to_string()))?;
        scenario.run().map_err(|error| failed(error.to_string()))
    };
    let keep = |index: usize, outcome: Outcome| {
        found[index / repetitions].add(&outcome);
        // Every arm has the scores of the first arm's first repetition, because the workload alone
        // determines them.
        if index == 0 {
            described = outcome.scores;
        }
        Ok(())
    };
    pool::run(spec.arms.len() * repetitions, jobs, progress, run, keep)?;
    let draws = seed(spec.seed, &[&parts[..], &["bootstrap"]].concat(), 0);
    let mut scores = scores(spec, &described, &mut found, draws);
    let seed_of = |repetition| seed(spec.seed, &parts, repetition);
    raw::of_comparison(spec, &scores, &seed_of, each)?;
    if !spec.statistics {
        let arms = scores.iter_mut().flat_map(|score| &mut score.arms);
        arms.for_each(|arm| arm.iterations = Vec::new());
    }
    let tallies = found
        .iter()
        .zip(&spec.arms)
        .map(|(ArmFound { tally, .. }, arm)| {
            (tally.latency(&arm.name, true), tally.cpus(&arm.name, true))
        });
    let (latency, cpus) = tallies.unzip();
    let rates: Vec<&Rates> = found.iter().map(|arm| &arm.rates).collect();
    let names = spec.arms.iter().map(|arm| arm.name.as_str());
    let lines = names.zip(&found);
    Ok(Comparison {
        machine: spec.machine.name.clone(),
        place: None,
        workload: spec.workload.clone(),
        era: spec.era.to_string(),
        hz: spec.hz,
        root_domain: spec.root_domain.changed().map(str::to_string),
        seed: spec.seed,
        repetitions: spec.effort.repetitions,
        arms: spec
            .arms
            .iter()
            .map(|arm| ArmModes {
                name: arm.name.clone(),
                modes: arm.modes.to_string(),
            })
            .collect(),
        scores,
        latency,
        cpus,
        machine_toml: spec.machine.to_toml(),
        decisions: counts(
            &rates,
            Reason::ALL.iter().map(|reason| reason.name()),
            |rates| &rates.decisions,
        ),
        chosen: chosen(!workload.groups.is_empty(), spec.machine.cpus.len(), &rates),
        cache: counts(&rates, CacheStep::ALL[1..].iter().map(|s| s.name()), |r| {
            &r.cache
        }),
        wake_distance: counts(&rates, distances(), |rates| &rates.wake_distance),
        migrations: counts(&rates, distances(), |rates| &rates.migrations),
        balanced: counts(&rates, distances(), |rates| &rates.balanced),
        guests: guests(&rates),
        totals: totals(&rates),
        contention: lines
            .filter_map(|(arm, found)| found.lines.found(arm))
            .collect(),
    })
}

/// Returns the parts that, beside the comparison's own seed, its simulations' seeds are derived
/// from.
fn parts(spec: &CompareSpec) -> [&str; 3] {
    ["compare", &spec.machine.name, &spec.workload]
}

fn scenario(
    spec: &CompareSpec,
    topology: &Arc<Topology>,
    arm: &Arm,
    repetition: usize,
) -> Result<Scenario, WorkloadError> {
    Ok(Scenario {
        machine: Arc::clone(&spec.machine),
        topology: Arc::clone(topology),
        policy: Policy::new(spec.era, arm.modes),
        hz: spec.hz,
        root_domain: spec.root_domain,
        workload: Workload::parse_within(&spec.workload, &spec.machine, spec.budget)?,
        warmup_ns: spec.effort.warmup_ns,
        measure_ns: spec.effort.measure_ns,
        seed: seed(spec.seed, &parts(spec), repetition as u32),
    })
}

fn failure(spec: &CompareSpec, arm: &Arm, repetition: usize, reason: String) -> ExperimentError {
    let what = format!(
        "{}, arm {}, repetition {repetition}",
        spec.workload, arm.name
    );
    ExperimentError::Run { what, reason }
}

/// Runs an arm's first repetition once more and lets an observer watch it. `begin` makes the
/// observer, and is told which run the observer will see.
///
/// # Errors
/// Returns the errors of [`compare`], and an error when the observer cannot keep what it is told.
pub fn watch<W: Watch>(
    spec: &CompareSpec,
    arm: usize,
    begin: impl FnOnce(&Scenario) -> std::io::Result<W>,
) -> Result<(), ExperimentError> {
    check(spec)?;
    let arm = &spec.arms[arm];
    let failed = |reason: String| failure(spec, arm, 0, reason);
    let scenario = scenario(spec, &Topology::new(&spec.machine), arm, 0);
    let scenario = scenario.map_err(|error| failed(error.to_string()))?;
    let mut watch = begin(&scenario).map_err(|error| failed(error.to_string()))?;
    let run = scenario.run_watched(&mut watch);
    run.map(drop).map_err(|error| failed(error.to_string()))
}

/// Refuses what makes no sense, and returns the workload.
fn check(spec: &CompareSpec) -> Result<Workload, ExperimentError> {
    let refuse = |reason: String| Err(ExperimentError::Argument(reason));
    if spec.arms.is_empty() {
        return refuse("no arm: expected --arm NAME:MECHANISM=MODE at least once".to_string());
    }
    for (index, arm) in spec.arms.iter().enumerate() {
        if spec.arms[..index]
            .iter()
            .any(|other| other.name == arm.name)
        {
            return refuse(format!(
                "there are two arms `{}`: give each its own name",
                arm.name
            ));
        }
        if let Err(error) = spec.era.check(&arm.modes) {
            return refuse(format!("arm `{}`: {error}", arm.name));
        }
    }
    if spec.jobs == 0 || spec.effort.repetitions == 0 || spec.effort.measure_ns == 0 {
        return refuse("jobs, repetitions and the measured time must be at least 1".to_string());
    }
    let least = DESCRIBE.map(Statistic::least).into_iter().max();
    if spec.statistics && Some(spec.effort.repetitions) < least {
        return refuse(format!(
            "{} repetition has no standard deviation: expected at least 2 for statistics",
            spec.effort.repetitions
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
fn affordable(spec: &CompareSpec, workload: &Workload) -> Result<usize, ExperimentError> {
    let each = Demand::of(workload, spec.machine.cpus.len());
    let repetitions = u64::from(spec.effort.repetitions);
    let kept = Demand {
        simulations: repetitions.saturating_mul(spec.arms.len() as u64),
        ..Demand::default()
    };
    let asked = format!("repetitions={repetitions} and arms={}", spec.arms.len());
    let affordable = spec.budget.check(&asked, kept);
    affordable.map_err(|over| ExperimentError::Argument(over.to_string()))?;
    Ok(spec.budget.at_a_time(spec.jobs, each, kept))
}

/// Makes a row for each score, of the values that `found` has, which lose them. A bootstrap draws
/// from `draws`.
fn scores(
    spec: &CompareSpec,
    described: &[Score],
    found: &mut [ArmFound],
    draws: u64,
) -> Vec<ScoreRow> {
    let mut of_arms = |values: &dyn Fn(&mut ArmFound) -> &mut Vec<f64>| {
        let names = spec.arms.iter().map(|arm| arm.name.as_str());
        let values = found.iter_mut().map(|arm| std::mem::take(values(arm)));
        arm_scores(names, values.collect(), spec.statistics, draws)
    };
    let mut rows: Vec<ScoreRow> = Vec::new();
    for (score, described) in described.iter().enumerate() {
        rows.push(ScoreRow {
            name: described.name.clone(),
            unit: described.unit.to_string(),
            higher_is_better: described.higher_is_better,
            arms: of_arms(&|arm| &mut arm.scores[score]),
        });
    }
    rows.push(ScoreRow {
        name: "wake-up latency".to_string(),
        unit: "us".to_string(),
        higher_is_better: false,
        arms: of_arms(&|arm| &mut arm.latency_us),
    });
    // On a machine without figures for contended lines, the kernel's share of the time has no
    // measure to stand beside.
    if spec.machine.hardware.contended_line.is_some() {
        rows.push(ScoreRow {
            name: "kernel time".to_string(),
            unit: "% of busy time".to_string(),
            higher_is_better: false,
            arms: of_arms(&|arm| &mut arm.kernel_pct),
        });
    }
    rows
}

#[cfg(test)]
mod tests;

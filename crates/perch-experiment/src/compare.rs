// SPDX-License-Identifier: GPL-2.0-or-later
//! A comparison puts arbitrary arms on one workload; it tells the scores of each arm and what each
//! arm did differently.

mod counts;
mod kernels;
mod measured;
mod plan;
mod rounds;
mod scoring;
mod settled;
mod spec;

use perch_policy::{CacheStep, Reason};
use perch_sim::{Scenario, Watch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::MODEL;
use crate::contention::Contention;
use crate::error::ExperimentError;
use crate::pool::Progress;
use crate::report::ArmModes;
use crate::seed::seed;
use crate::tally::{ArmCpus, WakeLatency};
use crate::trust::Trust;

pub use counts::CountRow;
use counts::{ArmRates, chosen, counts, guests, said_by_policy, totals};
pub(crate) use counts::{Rates, distances, occurred};
pub use kernels::ArmKernel;
pub use measured::{MeasuredScore, MeasuredSpec, Measurement, compare_measured};
pub use plan::{Plan, Window};
use rounds::{Found, Rounds};
use scoring::arm_scores;
pub use scoring::{ArmScore, StatisticScore};
pub use settled::Unsettled;
pub use spec::CompareSpec;
use spec::{affordable, check, failure, parts, scenario};

/// One score of the workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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

impl ScoreRow {
    /// Returns true if something happened in any arm that the score is made of.
    pub fn occurred(&self) -> bool {
        let mut means = self.arms.iter().map(|arm| arm.mean);
        means.any(|mean| mean.is_finite() && mean != 0.0)
    }
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The machine's name.
    pub machine: String,
    /// What ran the arms, in words, where that was not the simulator: `a guest of 8 CPUs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The workload.
    pub workload: String,
    /// The stock kernel; where the arms ran on several, their releases.
    pub era: String,
    /// Ticks of the kernel per second; 0 where nobody knows them or the arms' kernels differ in
    /// them.
    pub hz: u32,
    /// The layout of that kernel's root domain, where it differs from the stock one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_domain: Option<String>,
    /// The version of the model ([`crate::MODEL`]): builds of one version bring the same figures back.
    #[serde(default)]
    pub model: String,
    /// The seed that brings this comparison back.
    pub seed: u64,
    /// Simulations per arm.
    pub repetitions: u32,
    /// The times of a simulation; none where the workload starts and stops its clock itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// How far the figures may be trusted; none where they are not the simulator's.
    #[serde(default)]
    pub trust: Option<Trust>,
    /// The arms and their modes; changes are from the first.
    pub arms: Vec<ArmModes>,
    /// The kernel that each arm ran on; empty where that was the simulator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<ArmKernel>,
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

impl Comparison {
    /// Returns everything that is counted, each kind under its key in JSON.
    pub fn counted(&self) -> [(&'static str, &[CountRow]); 8] {
        [
            ("decisions", &self.decisions),
            ("chosen", &self.chosen),
            ("cache", &self.cache),
            ("wake_distance", &self.wake_distance),
            ("migrations", &self.migrations),
            ("balanced", &self.balanced),
            ("guests", &self.guests),
            ("totals", &self.totals),
        ]
    }

    fn forget_iterations(&mut self) {
        let arms = self.scores.iter_mut().flat_map(|score| &mut score.arms);
        arms.for_each(|arm| arm.iterations = Vec::new());
    }
}

/// Runs a comparison.
///
/// # Errors
/// Returns [`ExperimentError::Argument`] when the arms, the workload or a number make no sense, and
/// [`ExperimentError::Run`] when a simulation fails.
pub fn compare(spec: &CompareSpec, progress: Progress) -> Result<Comparison, ExperimentError> {
    let mut found = compare_in_full(spec, progress)?;
    if !spec.statistics {
        found.forget_iterations();
    }
    Ok(found)
}

/// Refuses what [`compare`] would refuse, and simulates nothing.
///
/// # Errors
/// Returns [`ExperimentError::Argument`] as [`compare`] does.
pub fn check_comparison(spec: &CompareSpec) -> Result<(), ExperimentError> {
    let workload = check(spec)?;
    affordable(spec, &workload).map(drop)
}

/// Runs a comparison like [`compare`], and always keeps the iterations that the means are made of.
///
/// # Errors
/// Returns the errors of [`compare`].
pub fn compare_in_full(
    spec: &CompareSpec,
    progress: Progress,
) -> Result<Comparison, ExperimentError> {
    let workload = check(spec)?;
    let jobs = affordable(spec, &workload)?;
    let (mut found, window) = Rounds::new(spec, &workload, jobs, progress).run()?;
    let parts = parts(spec);
    let draws = seed(spec.seed, &[&parts[..], &["bootstrap"]].concat(), 0);
    let scores = scores(spec, &mut found, draws);
    let tallies = found.arms.iter().zip(&spec.arms).map(|(found, arm)| {
        let tally = &found.tally;
        (tally.latency(&arm.name, true), tally.cpus(&arm.name, true))
    });
    let (latency, cpus) = tallies.unzip();
    let rates = found
        .arms
        .iter()
        .zip(&spec.arms)
        .map(|(found, arm)| ArmRates { rates: &found.rates, is_outside: arm.scheduler.is_some() });
    let rates: Vec<ArmRates> = rates.collect();
    let names = spec.arms.iter().map(|arm| arm.name.as_str());
    let lines = names.zip(&found.arms);
    Ok(Comparison {
        machine: spec.machine.name.clone(),
        place: None,
        workload: spec.workload.clone(),
        era: spec.era.to_string(),
        hz: spec.hz,
        root_domain: spec.root_domain.changed().map(str::to_string),
        model: MODEL.to_string(),
        seed: spec.seed,
        trust: Some(Trust::of(&spec.machine, &spec.workload)),
        repetitions: found.effort.repetitions,
        window,
        arms: spec
            .arms
            .iter()
            .map(|arm| ArmModes { name: arm.name.clone(), modes: arm.words() })
            .collect(),
        kernels: Vec::new(),
        scores,
        latency,
        cpus,
        machine_toml: spec.machine.to_toml(),
        decisions: said_by_policy(
            &rates,
            Reason::ALL.iter().map(|reason| reason.name()),
            |rates| &rates.decisions,
        ),
        chosen: chosen(!workload.groups.is_empty(), spec.machine.cpus.len(), &rates),
        cache: said_by_policy(&rates, CacheStep::ALL[1..].iter().map(|s| s.name()), |r| &r.cache),
        wake_distance: counts(&rates, distances(), |rates| &rates.wake_distance),
        migrations: counts(&rates, distances(), |rates| &rates.migrations),
        balanced: counts(&rates, distances(), |rates| &rates.balanced),
        guests: guests(&rates),
        totals: totals(&rates),
        contention: lines.filter_map(|(arm, found)| found.lines.found(arm)).collect(),
    })
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
    let effort = spec.plan.watched(&check(spec)?);
    let arm = &spec.arms[arm];
    let scenario = scenario(spec, arm, 0, effort)?;
    let mut watch = begin(&scenario).map_err(|error| failure(spec, arm, 0, &error))?;
    let run = scenario.run_watched(&mut watch);
    run.map(drop).map_err(|error| failure(spec, arm, 0, &error))
}

/// Makes a row for each score, of the values that `found` has, which lose them. A bootstrap draws
/// from `draws`.
fn scores(spec: &CompareSpec, found: &mut Found, draws: u64) -> Vec<ScoreRow> {
    let effort = found.effort;
    let described = found.described.iter();
    let described = described.map(|score| (score.name.clone(), score.unit, score.higher_is_better));
    let latency = ("wake-up latency".to_string(), "us", false);
    let mut described: Vec<_> = described.chain([latency]).collect();
    // On a machine without figures for contended lines, the kernel's share of the time has no
    // measure to stand beside.
    if spec.machine.hardware.contended_line.is_some() {
        described.push(("kernel time".to_string(), "% of busy time", false));
    }
    let rows = described.into_iter().enumerate();
    let rows = rows.map(|(score, (name, unit, higher_is_better))| {
        let courses: Vec<_> = (found.arms.iter())
            .map(|arm| (arm.scores[score].course(), arm.scores[score].transient()))
            .collect();
        let values =
            (found.arms.iter_mut()).map(|arm| std::mem::take(&mut arm.scores[score].values));
        let names = spec.arms.iter().map(|arm| arm.name.as_str());
        let mut arms = arm_scores(names, values.collect(), spec.statistics, draws);
        for (arm, (course, part)) in arms.iter_mut().zip(courses) {
            arm.course = course;
            arm.transient_ms = part.map(|part| effort.moment_ms(part));
        }
        ScoreRow { name, unit: unit.to_string(), higher_is_better, arms }
    });
    rows.collect()
}

#[cfg(test)]
mod tests;

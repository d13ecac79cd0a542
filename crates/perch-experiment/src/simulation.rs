// SPDX-License-Identifier: GPL-2.0-or-later
//! One simulation as a value: all that its result depends on, and the key under which the result is
//! kept.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::Path;
use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::Era;
use perch_sim::RootDomain;
use perch_workload::{Budget, OF_FILES};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::MODEL;
use crate::arm::Arm;
use crate::compare::{
    self, CompareSpec, Comparison, CountRow, Plan, Unsettled, Window, check_comparison,
};
use crate::error::ExperimentError;
use crate::json::nulls_are_nan;
use crate::machine::{Base, Known};
use crate::thoroughness::Thoroughness;

/// One simulation: a machine, a workload, a kernel, the mechanisms' modes, an effort and a seed.
/// Keys that are left out are as `perch compare` has them by default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["machine"] }, { "required": ["machine_toml"] }]))]
pub struct Simulation {
    /// A machine of the library or the path of a machine's file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// The whole machine as TOML, in place of `machine`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_toml: Option<String>,
    /// Values of the machine's file that differ in this simulation, by key:
    /// `hardware.transfer_ns.llc`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, OfMachine>")]
    pub changed: BTreeMap<String, toml::Value>,
    /// The workload, as `perch compare` takes it.
    pub workload: String,
    /// The stock kernel: `6.5`.
    #[serde(default = "era")]
    pub era: String,
    /// Ticks per second.
    #[serde(default = "hz")]
    pub hz: u32,
    /// The layout of the kernel's root domain.
    #[serde(default = "root_domain")]
    pub root_domain: String,
    /// The mechanisms' modes, `cluster=posted,cache=off` or `off`; or a scheduler in place of the
    /// kernel's, `live:SETTINGS` or `scx:FILE`.
    #[serde(default = "off")]
    pub modes: String,
    /// How long to simulate, and how often.
    #[serde(default)]
    pub effort: Times,
    /// The seed.
    #[serde(default = "seed")]
    pub seed: u64,
}

fn era() -> String {
    "7.2".to_string()
}
fn hz() -> u32 {
    250
}
fn root_domain() -> String {
    "stock".to_string()
}
fn off() -> String {
    "off".to_string()
}
fn seed() -> u64 {
    1
}

// TOML's own type has no schema.
/// A value of the machine's file.
#[derive(JsonSchema)]
#[schemars(extend("type" = ["number", "string", "boolean", "array"]))]
pub(crate) struct OfMachine(
    #[expect(dead_code, reason = "only the schema is used")] serde_json::Value,
);

/// Returns the schema of a simulation in JSON.
pub fn simulation_schema() -> Schema {
    let settings = SchemaSettings::draft2020_12();
    settings.into_generator().into_root_schema_for::<Simulation>()
}

/// How long a simulation lasts, and how often it is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Times {
    /// Until its scores are steady, or this effort is spent.
    Until(Thoroughness),
    /// So long and so often.
    ByHand(ByHand),
}

impl Default for Times {
    fn default() -> Times {
        Times::Until(Thoroughness::Quick)
    }
}

/// The times of a simulation that somebody has said.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ByHand {
    /// Simulated time before anything is counted, in milliseconds.
    pub warmup_ms: u32,
    /// Simulated time that is counted, in milliseconds, at least 1.
    #[schemars(range(min = 1))]
    pub measure_ms: u32,
    /// The number of repetitions, each with a seed of its own, at least 1.
    #[schemars(range(min = 1))]
    pub repetitions: u32,
}

impl Times {
    /// Returns how long a comparison of these times simulates, and how often.
    pub fn plan(self) -> Plan {
        let ns = |ms: u32| u64::from(ms) * 1_000_000;
        match self {
            Times::Until(effort) => Plan::Until { effort, repetitions: None },
            Times::ByHand(times) => {
                Plan::by_hand(ns(times.warmup_ms), ns(times.measure_ms), Some(times.repetitions))
            }
        }
    }
}

/// The key of a simulation: the digest of all that its result depends on, the model's version among
/// it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Key(#[schemars(extend("pattern" = "^[0-9a-f]{64}$"))] String);

impl Key {
    /// Returns the key that a file's name is, where it is one.
    pub(crate) fn read(name: &str) -> Option<Key> {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (name.len() == 64 && name.bytes().all(hex)).then(|| Key(name.to_string()))
    }

    /// Returns the 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", &self.0[..self.0.len().min(12)])
    }
}

/// The text that the key is the digest of. Names are replaced by what they mean, so that a renamed file of
/// the same machine is the same simulation.
#[derive(Serialize)]
struct Canonical<'a> {
    model: &'a str,
    machine: String,
    workload: &'a str,
    files: Vec<String>,
    era: String,
    hz: u32,
    root_domain: &'a str,
    modes: String,
    effort: Times,
    seed: u64,
}

/// What a simulation may take and run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// The memory of its tasks and scores.
    pub budget: Budget,
    /// True where it may compile and run the scheduler that `scx:FILE` names: foreign code, with the
    /// rights of this process.
    pub allow_scx: bool,
}

/// A simulation that was checked, and can run.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The simulation as it was asked for, with a machine's file replaced by its text.
    pub asked: Simulation,
    /// The key.
    pub key: Key,
    era: Era,
    root_domain: RootDomain,
    arm: Arm,
    budget: Budget,
}

/// One score of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoreFound {
    /// The quantity.
    pub name: String,
    /// The unit.
    pub unit: String,
    /// True where more is better.
    pub higher_is_better: bool,
    /// The values, one a repetition. Repetitions of the same number share a seed in all modes. A
    /// score that nothing was counted for is NaN, and null in JSON.
    #[serde(deserialize_with = "nulls_are_nan")]
    #[schemars(with = "Vec<Option<f64>>")]
    pub values: Vec<f64>,
    /// False where time alone may still change the score: it did while it was measured, or the
    /// times are too short to tell. Such a score counts for nobody.
    pub settled: bool,
    /// The simulated time, in milliseconds from the beginning, until which the score changed with
    /// time while it was measured; none where it was steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transient_ms: Option<f64>,
}

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// The number of repetitions.
    pub repetitions: u32,
    /// The times; none where the workload starts and stops its clock itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// The scores.
    pub scores: Vec<ScoreFound>,
    /// Events per simulated second, mean over the repetitions, by what they are and by name; those
    /// that never occurred are left out.
    pub counts: BTreeMap<String, BTreeMap<String, f64>>,
}

impl Simulation {
    /// Reads a simulation from JSON. `origin` is the text's name in errors.
    ///
    /// # Errors
    /// Returns [`ExperimentError::Invalid`] when the text is no JSON or has an unknown or malformed key.
    pub fn from_json(text: &str, origin: &str) -> Result<Simulation, ExperimentError> {
        serde_json::from_str(text).map_err(|error| {
            ExperimentError::key(
                origin,
                "",
                format!("{error}; expected a simulation (docs/sweeps.md)"),
            )
        })
    }

    /// Checks the simulation, within what it may take, and computes its key. `origin` is its name in
    /// errors.
    ///
    /// # Errors
    /// Returns the reason why it cannot be simulated, with the key to blame.
    pub fn prepare(self, origin: &str, limits: Limits) -> Result<Prepared, ExperimentError> {
        let known = self.machine_as_said(origin)?;
        let arm = self.arm(origin, limits)?;
        self.with_machine(known, arm, origin, limits)
    }

    /// Returns the machine's name; `machine_toml` where it is given as text.
    pub fn machine_name(&self) -> &str {
        if self.machine.is_empty() { "machine_toml" } else { &self.machine }
    }

    /// Returns the changed values of the machine in words.
    pub fn changes(&self) -> String {
        let changed = self.changed.iter();
        changed.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
    }

    /// True where `modes` name the code of another scheduler.
    pub(crate) fn is_foreign(&self) -> bool {
        self.modes.starts_with("scx:")
    }

    /// Returns the arm that `modes` say. A scheduler's source is compiled each time.
    pub(crate) fn arm(&self, origin: &str, limits: Limits) -> Result<Arm, ExperimentError> {
        if self.is_foreign() && !limits.allow_scx {
            let reason = format!(
                "{} is code that would run with your rights: read it, and say --allow-scx (Python: \
                 allow_scx=True)",
                self.modes
            );
            return Err(ExperimentError::key(origin, "modes", reason));
        }
        let era = (self.era.parse()).map_err(|error| ExperimentError::key(origin, "era", error))?;
        Arm::new(&self.modes, &self.modes, era)
            .map_err(|why| ExperimentError::key(origin, "modes", why))
    }

    pub(crate) fn machine_as_said(&self, origin: &str) -> Result<Known, ExperimentError> {
        match (&self.machine_toml, self.machine.is_empty()) {
            (Some(text), true) => Known::of_text(text, &self.changed, origin),
            (None, false) => {
                if let Some(known) = Known::of_library(&self.machine, &self.changed, origin) {
                    return known;
                }
                let base = Base::new(perch_machine::resolve(&self.machine)?);
                Known::new(base.into(), &self.changed, origin)
            }
            _ => Err(ExperimentError::key(
                origin,
                "machine",
                "expected either `machine`, a name or a path, or `machine_toml`, the text",
            )),
        }
    }

    /// As [`Simulation::prepare`], with a machine and an arm that are there.
    pub(crate) fn with_machine(
        self,
        known: Known,
        arm: Arm,
        origin: &str,
        limits: Limits,
    ) -> Result<Prepared, ExperimentError> {
        let prepared = self.resolve(&known, arm, origin, limits)?;
        let checked = check_comparison(&prepared.spec(known));
        match checked {
            Ok(()) => Ok(prepared),
            Err(error) => Err(ExperimentError::key(origin, "simulation", error.to_string())),
        }
    }

    /// Computes the key of a simulation that ran, whatever it may have taken.
    pub(crate) fn key(self, origin: &str) -> Result<Key, ExperimentError> {
        let known = self.machine_as_said(origin)?;
        let arm = self.arm(origin, Limits::default())?;
        Ok(self.resolve(&known, arm, origin, Limits::default())?.key)
    }

    /// Reads all names.
    fn resolve(
        mut self,
        known: &Known,
        arm: Arm,
        origin: &str,
        limits: Limits,
    ) -> Result<Prepared, ExperimentError> {
        let refused = |key: &str, why: &dyn Display| ExperimentError::key(origin, key, why);
        if self.machine_toml.is_none()
            && perch_machine::library::names().all(|name| name != self.machine)
        {
            // The file may be another one tomorrow, and does not exist on another machine.
            self.machine_toml = Some(known.base.text.clone());
            self.machine = String::new();
        }
        let era: Era = (self.era.parse()).map_err(|error| refused("era", &error))?;
        let root_domain: RootDomain =
            (self.root_domain.parse()).map_err(|error| refused("root_domain", &error))?;
        let canonical = Canonical {
            model: MODEL,
            machine: known.digest.clone(),
            workload: &self.workload,
            files: files(&self.workload)?,
            era: era.to_string(),
            hz: self.hz,
            root_domain: &self.root_domain,
            modes: match &arm.scheduler {
                Some(scheduler) => digest(scheduler.image()),
                None => arm.modes.to_string(),
            },
            effort: self.effort,
            seed: self.seed,
        };
        let canonical = serde_json::to_string(&canonical).expect("a struct of texts and numbers");
        let key = Key(digest(canonical.as_bytes()));
        Ok(Prepared { asked: self, key, era, root_domain, arm, budget: limits.budget })
    }
}

impl Prepared {
    /// Returns the machine. It is kept for a while, and made anew after that: those of all simulations of a
    /// sweep may take gigabytes.
    ///
    /// # Errors
    /// None that the simulation's check has not found.
    pub fn machine(&self) -> Result<Arc<Machine>, ExperimentError> {
        Ok(self.known()?.machine)
    }

    fn known(&self) -> Result<Known, ExperimentError> {
        self.asked.machine_as_said(self.key.as_str())
    }

    fn spec(&self, known: Known) -> CompareSpec {
        CompareSpec {
            machine: known.machine,
            topology: known.topology,
            era: self.era,
            hz: self.asked.hz,
            root_domain: self.root_domain,
            workload: self.asked.workload.clone(),
            arms: vec![self.arm.clone()],
            plan: self.asked.effort.plan(),
            statistics: false,
            seed: self.asked.seed,
            jobs: 1,
            budget: self.budget,
        }
    }

    /// Simulates on one thread.
    ///
    /// # Errors
    /// Returns the reason why the simulation failed.
    pub fn run(&self) -> Result<Found, ExperimentError> {
        let spec = self.spec(self.known()?);
        Ok(Found::of(compare::compare_in_full(&spec, &mut |_, _| {})?))
    }
}

impl Found {
    /// Returns the score of that name.
    pub fn score(&self, name: &str) -> Option<&ScoreFound> {
        self.scores.iter().find(|score| score.name == name)
    }

    /// Returns the reason why one of the scores is not settled; none where it is.
    pub fn unsettled(&self, score: &ScoreFound) -> Option<Unsettled> {
        Unsettled::of(self.window.as_ref(), score.transient_ms)
    }

    /// Returns what a comparison of one arm found.
    fn of(comparison: Comparison) -> Found {
        let rates = |rows: &[CountRow]| -> BTreeMap<String, f64> {
            let rates =
                rows.iter().map(|row| Some((row.name.clone(), (*row.per_second.first()?)?)));
            rates.flatten().collect()
        };
        // The CPUs that were chosen are many, and nobody asks a sweep for them.
        let counts = comparison.counted().into_iter().filter(|(what, _)| *what != "chosen");
        let counts = counts.map(|(what, rows)| (what.to_string(), rates(rows)));
        let counts = counts.filter(|(_, rates)| !rates.is_empty()).collect();
        let window = comparison.window;
        let scores = comparison.scores.into_iter().map(|mut score| {
            let arm = score.arms.swap_remove(0);
            let transient_ms = arm.transient_ms;
            ScoreFound {
                name: score.name,
                unit: score.unit,
                higher_is_better: score.higher_is_better,
                values: arm.iterations,
                settled: Unsettled::of(window.as_ref(), transient_ms).is_none(),
                transient_ms,
            }
        });
        let scores = scores.collect();
        Found { repetitions: comparison.repetitions, window, scores, counts }
    }
}

/// Returns the digests of the files that a workload reads.
fn files(workload: &str) -> Result<Vec<String>, ExperimentError> {
    let mut digests = Vec::new();
    for kind in OF_FILES {
        for after in workload.split(&format!("{kind}:")).skip(1) {
            let path = after.split(',').next().unwrap_or(after);
            let mut file = perch_file::open(Path::new(path))?;
            let mut hash = Sha256::new();
            std::io::copy(&mut file, &mut hash).map_err(ExperimentError::io(Path::new(path)))?;
            digests.push(format!("{:x}", hash.finalize()));
        }
    }
    Ok(digests)
}

/// Returns the digest of some bytes, in hexadecimal digits.
pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! A sweep: one simulation, and axes along which it varies.

mod axis;
mod condition;
mod rank;
mod run;
mod schema;
mod table;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use perch_file::Kind;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arm::Arm;
use crate::error::ExperimentError;
use crate::simulation::{Limits, Prepared, Simulation, Times};
use axis::{Axis, Design, axes};
use condition::Condition;

pub use rank::{ArmGain, ArmRanking, RankRow, RankVerdict, Standing};
pub use run::{Advance, Done, Shard, ShardError};
pub use schema::sweep_schema;
pub use table::SweepRow;

/// The sweeps that perch knows by name.
const LIBRARY: [(&str, &str); 3] = [
    ("composition", include_str!("../../../experiments/sweeps/composition.toml")),
    ("league", include_str!("../../../experiments/sweeps/league.toml")),
    ("live", include_str!("../../../experiments/sweeps/live.toml")),
];

/// The most points that a sweep has.
const MOST_POINTS: usize = 1_000_000;

/// The most conditions of a sweep, each of which is asked at each point.
const MOST_CONDITIONS: usize = 256;

/// A sweep, as perch sweep takes it (docs/sweeps.md). A key that is left out is as `perch compare` has it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct File {
    /// A machine of the library, or the path of a machine's file.
    #[serde(default)]
    machine: String,
    /// The workload, as `perch compare` takes it.
    #[serde(default)]
    workload: String,
    /// The stock kernel: `6.5`.
    era: Option<String>,
    /// Ticks per second.
    hz: Option<u32>,
    /// The layout of the kernel's root domain.
    root_domain: Option<String>,
    /// The mechanisms' modes, or `off`, where no axis is `arm`.
    modes: Option<String>,
    /// How long to simulate, and how often.
    effort: Option<Times>,
    /// The seed.
    seed: Option<u64>,
    /// The arm from which changes are shown.
    baseline: Option<String>,
    /// The scores that `perch sweep rank` counts; of a load that has none of them, its first one.
    #[serde(default)]
    scores: Vec<String>,
    /// A combination is simulated if all of these hold: `workload.n <= cpus`.
    #[serde(default)]
    conditions: Vec<String>,
    /// Every combination of these is taken.
    #[serde(default)]
    #[schemars(with = "schema::Axes")]
    axes: toml::Table,
    /// A Latin hypercube.
    design: Option<DesignFile>,
}

/// A Latin hypercube: each axis is cut into as many parts as there are points, and each part has one
/// point.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DesignFile {
    /// The number of points.
    #[schemars(range(min = 1))]
    points: u32,
    /// The seed of the draws.
    #[serde(default)]
    seed: u64,
    /// The axes; none of them is `arm`.
    #[schemars(with = "schema::Axes", extend("not" = { "required": ["arm"] }))]
    axes: toml::Table,
}

/// A sweep that was read and checked.
#[derive(Debug)]
pub struct Sweep {
    origin: String,
    base: Simulation,
    /// The axes of which every combination is taken.
    axes: Vec<Axis>,
    design: Option<Design>,
    conditions: Vec<Condition>,
    baseline: Option<String>,
    scores: Vec<String>,
    /// The texts of the machines' files, each read once.
    files: Memo<String>,
    /// The arms, each made once: a scheduler may have to be compiled.
    arms: Memo<Arm>,
    limits: Limits,
}

/// One simulation of a sweep, with its place on each axis.
#[derive(Clone, Debug)]
pub struct Point {
    /// The values, in the order of [`Sweep::names`].
    pub values: Vec<toml::Value>,
    /// The simulation.
    pub prepared: Prepared,
}

impl Sweep {
    /// Reads the sweep in a file.
    ///
    /// # Errors
    /// Names the file and the key that make no sense.
    pub fn from_file(path: &Path) -> Result<Sweep, ExperimentError> {
        let text = perch_file::text(path, Kind::EXPERIMENT)?;
        Sweep::from_toml(&text, &path.display().to_string())
    }

    /// Returns the sweep of the library with that name, else the one in the file at that path.
    ///
    /// # Errors
    /// As [`Sweep::from_file`], which names the library's sweeps where there is no such file.
    pub fn resolve(name_or_path: &str) -> Result<Sweep, ExperimentError> {
        if let Some((name, text)) = LIBRARY.iter().find(|(name, _)| *name == name_or_path) {
            return Sweep::from_toml(text, &format!("experiments/sweeps/{name}.toml"));
        }
        let path = Path::new(name_or_path);
        if !path.exists() {
            return Err(ExperimentError::Unknown {
                what: "sweep",
                name: name_or_path.to_string(),
                known: LIBRARY.map(|(name, _)| name).join(", "),
            });
        }
        Sweep::from_file(path)
    }

    /// Reads a sweep; `origin` is its name in errors.
    ///
    /// # Errors
    /// Names the key that makes no sense.
    pub fn from_toml(text: &str, origin: &str) -> Result<Sweep, ExperimentError> {
        let file: File = toml::from_str(text)
            .map_err(|error| ExperimentError::key(origin, "", error.to_string().trim_end()))?;
        let product = axes(&file.axes, "axes", origin)?;
        let design = file.design.map(|design| {
            let axes = axes(&design.axes, "design.axes", origin)?;
            Design::new(axes, design.points, design.seed, origin)
        });
        let design = design.transpose()?;
        let named: Vec<&str> = (product.iter())
            .chain(design.iter().flat_map(Design::axes))
            .map(|axis| axis.name.as_str())
            .collect();
        if let Some((_, twice)) =
            (named.iter().enumerate()).find(|(i, name)| named[..*i].contains(name))
        {
            return Err(ExperimentError::key(origin, *twice, "it is an axis twice"));
        }
        for (key, is_said) in
            [("machine", !file.machine.is_empty()), ("workload", !file.workload.is_empty())]
        {
            if !is_said && !named.contains(&key) {
                let reason = "expected a value, or an axis of that name in [axes]";
                return Err(ExperimentError::key(origin, key, reason));
            }
        }
        if file.conditions.len() > MOST_CONDITIONS {
            let reason = format!("expected at most {MOST_CONDITIONS}");
            return Err(ExperimentError::key(origin, "conditions", reason));
        }
        let conditions = file.conditions.iter();
        let conditions = conditions.map(|text| Condition::parse(text, &named, origin));
        let conditions = conditions.collect::<Result<_, _>>()?;
        let arms = product.iter().find(|axis| axis.name == "arm");
        if let Some(baseline) = &file.baseline
            && !arms.is_some_and(|arms| arms.labels.contains(baseline))
        {
            let reason = format!("`{baseline}` is not an arm: expected one of [axes.arm]");
            return Err(ExperimentError::key(origin, "baseline", reason));
        }
        let base: Simulation = Simulation {
            machine: file.machine,
            machine_toml: None,
            changed: BTreeMap::new(),
            workload: file.workload,
            era: file.era.unwrap_or_else(|| "7.2".to_string()),
            hz: file.hz.unwrap_or(250),
            root_domain: file.root_domain.unwrap_or_else(|| "stock".to_string()),
            modes: file.modes.unwrap_or_else(|| "off".to_string()),
            effort: file.effort.unwrap_or_default(),
            seed: file.seed.unwrap_or(1),
        };
        let sweep = Sweep {
            origin: origin.to_string(),
            base,
            axes: product,
            design,
            conditions,
            baseline: file.baseline,
            scores: file.scores,
            files: Memo::default(),
            arms: Memo::default(),
            limits: Limits::default(),
        };
        let all = sweep.combinations();
        if all > MOST_POINTS {
            let reason = format!("{all} combinations; expected at most {MOST_POINTS}");
            return Err(ExperimentError::key(origin, "axes", reason));
        }
        Ok(sweep)
    }

    /// Returns the sweep with other limits to what one of its simulations may take and run.
    pub fn within(self, limits: Limits) -> Sweep {
        Sweep { limits, ..self }
    }

    /// Returns the names of the axes.
    pub fn names(&self) -> Vec<&str> {
        let design = self.design.iter().flat_map(Design::axes);
        let axes = self.axes.iter().chain(design);
        axes.map(|axis| axis.name.as_str()).collect()
    }

    /// Returns the number of combinations, before conditions.
    pub fn combinations(&self) -> usize {
        let product =
            (self.axes.iter()).fold(1_usize, |product, axis| product.saturating_mul(axis.len()));
        product.saturating_mul(self.design.as_ref().map_or(1, Design::points))
    }

    /// Returns the sweep's simulations, those that its conditions let through, in the order of the
    /// axes; the last axis varies fastest. A simulation that was refused is an error in its place.
    pub fn points(&self) -> impl Iterator<Item = Result<Point, ExperimentError>> + '_ {
        (0..self.combinations()).filter_map(|index| self.point(index).transpose())
    }

    /// Returns a combination; none where a condition leaves it out.
    fn point(&self, mut index: usize) -> Result<Option<Point>, ExperimentError> {
        let mut values = Vec::new();
        let drawn = self.design.as_ref().map(|design| {
            let point = index % design.points();
            index /= design.points();
            design.point(point)
        });
        for axis in self.axes.iter().rev() {
            values.push((axis, axis.at(index % axis.len())));
            index /= axis.len();
        }
        values.reverse();
        let axes = self.design.iter().flat_map(Design::axes);
        values.extend(axes.zip(drawn.into_iter().flatten()));
        let mut simulation = self.base.clone();
        let mut keys = Vec::new();
        for (axis, (_, value)) in &values {
            axis.apply(value, &mut simulation, &mut keys)
                .map_err(|reason| ExperimentError::key(&self.origin, &axis.name, reason))?;
        }
        for (key, value) in keys {
            let separator = if simulation.workload.contains(':') { ',' } else { ':' };
            simulation.workload.push_str(&format!("{separator}{key}={value}"));
        }
        if perch_machine::library::names().all(|name| name != simulation.machine) {
            let path = std::mem::take(&mut simulation.machine);
            let text = self.files.get(&path, || Ok(perch_machine::resolve(&path)?.to_toml()))?;
            simulation.machine_toml = Some(text);
        }
        let machine = simulation.machine_as_said(&self.origin)?;
        let labels: Vec<toml::Value> = values.into_iter().map(|(_, (label, _))| label).collect();
        let names = self.names();
        let read = |name: &str| {
            let at = names.iter().position(|known| *known == name)?;
            Some(labels[at].clone())
        };
        for condition in &self.conditions {
            if !condition.holds(&read, machine.cpus(), &self.origin)? {
                return Ok(None);
            }
        }
        let place = || {
            let values = names.iter().zip(&labels);
            let values: Vec<String> =
                values.map(|(name, value)| format!("{name}={value}")).collect();
            format!("{} at {}", self.origin, values.join(", "))
        };
        let words = format!("{} of {}", simulation.modes, simulation.era);
        let arm = self.arms.get(&words, || simulation.arm(&place(), self.limits))?;
        let prepared = simulation.with_machine(machine, arm, &place(), self.limits)?;
        Ok(Some(Point { values: labels, prepared }))
    }
}

/// Values by name, each made once.
#[derive(Debug)]
struct Memo<T>(Mutex<BTreeMap<String, T>>);

impl<T> Default for Memo<T> {
    fn default() -> Memo<T> {
        Memo(Mutex::default())
    }
}

impl<T: Clone> Memo<T> {
    fn get(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<T, ExperimentError>,
    ) -> Result<T, ExperimentError> {
        let mut known = self.0.lock().expect("nobody panics while holding it");
        if let Some(found) = known.get(name) {
            return Ok(found.clone());
        }
        let made = make()?;
        known.insert(name.to_string(), made.clone());
        Ok(made)
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The axes of a sweep: lists, ranges, and designs in which several vary at once.

use std::collections::BTreeSet;

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Value;

use crate::error::ExperimentError;
use crate::machine::check_depth;
use crate::simulation::Simulation;

/// The most values of a range.
const MOST_VALUES: usize = 100_000;
/// The most values of a design, its points times its axes.
const MOST_DRAWN: usize = 1_000_000;

/// The part of a simulation that an axis varies.
#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Machine,
    /// A value of the machine's file, by its key.
    OfMachine(String),
    Workload,
    /// A key of the workload.
    OfWorkload(String),
    Era,
    Hz,
    Arm,
    Seed,
}

impl What {
    fn of(name: &str) -> Option<What> {
        Some(match name {
            "machine" => What::Machine,
            "workload" => What::Workload,
            "era" => What::Era,
            "hz" => What::Hz,
            "arm" => What::Arm,
            "seed" => What::Seed,
            _ => match name.split_once('.')? {
                ("workload", key) if !key.contains('.') => What::OfWorkload(key.to_string()),
                ("hardware" | "numa", _) => What::OfMachine(name.to_string()),
                _ => return None,
            },
        })
    }
}

/// One axis.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// Its name, with dots: `hardware.transfer_ns.llc`.
    pub name: String,
    what: What,
    values: Vec<Value>,
    /// What stands in tables for each value, where that is something else: an arm's name.
    pub labels: Vec<String>,
    /// The ends of a range that a design draws from.
    range: Option<Range>,
}

/// A range, as it is written. A range of two whole numbers has whole numbers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Range {
    /// The first value.
    #[schemars(with = "f64")]
    from: Value,
    /// The last value.
    #[schemars(with = "f64")]
    to: Value,
    /// The distance between two values, above 0.
    #[schemars(with = "Option<f64>")]
    step: Option<Value>,
    /// The number of values, in place of `step`.
    points: Option<u32>,
    /// Equal distances or equal factors.
    #[serde(default)]
    scale: Scale,
}

/// The scale on which the values of a range have equal distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Scale {
    /// Equal distances.
    #[default]
    Linear,
    /// Equal factors.
    Log,
}

/// Reads the axes of a table; `key` is the table's own in errors.
pub(super) fn axes(
    table: &toml::Table,
    key: &str,
    origin: &str,
) -> Result<Vec<Axis>, ExperimentError> {
    let mut found = Vec::new();
    collect(table, "", origin, &mut |name, value| {
        if found.len() == MOST_AXES {
            let reason = format!("expected at most {MOST_AXES} axes");
            return Err(ExperimentError::key(origin, key, reason));
        }
        let axis = What::of(name)
            .ok_or_else(|| {
                "no such axis: expected machine, workload, workload.KEY, hardware.KEY, numa.KEY, \
                 era, hz, arm or seed"
                    .to_string()
            })
            .and_then(|what| Axis::read(name, what, value));
        let refused = |reason| ExperimentError::key(origin, format!("{key}.{name}"), reason);
        found.push(axis.map_err(refused)?);
        Ok(())
    })?;
    Ok(found)
}

/// The most axes of a sweep; with two values each, 20 of them have more combinations than a sweep may.
const MOST_AXES: usize = 256;

/// Calls `axis` with each value of a table and its dotted name.
fn collect(
    table: &toml::Table,
    above: &str,
    origin: &str,
    axis: &mut dyn FnMut(&str, &Value) -> Result<(), ExperimentError>,
) -> Result<(), ExperimentError> {
    for (key, value) in table {
        let name = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
        check_depth(&name, origin)?;
        match value {
            Value::Table(inner) if name != "arm" && !inner.contains_key("from") => {
                collect(inner, &name, origin, axis)?;
            }
            value => axis(&name, value)?,
        }
    }
    Ok(())
}

impl Axis {
    fn read(name: &str, what: What, value: &Value) -> Result<Axis, String> {
        let mut axis = Axis {
            name: name.to_string(),
            what,
            values: Vec::new(),
            labels: Vec::new(),
            range: None,
        };
        match (value, axis.what == What::Arm) {
            (Value::Table(arms), true) => {
                axis.labels = arms.keys().cloned().collect();
                axis.values = arms.values().cloned().collect();
            }
            (Value::Array(list), is_arm) => {
                axis.values = list.clone();
                let text = |value: &Value| value.as_str().map(str::to_string);
                axis.labels =
                    if is_arm { list.iter().filter_map(text).collect() } else { Vec::new() };
            }
            (Value::Table(_), false) => {
                let range: Range = value.clone().try_into().map_err(|error: toml::de::Error| {
                    let expected = "expected { from = A, to = B, step = S } or points = N";
                    format!("{}; {expected}", error.message())
                })?;
                axis.values = range.values()?;
                axis.range = Some(range);
            }
            _ => {
                return Err(format!(
                    "{value} is neither a list nor a range: expected [A, B] or {{ from = A, to = B, \
                     step = S }}"
                ));
            }
        }
        if axis.values.is_empty() {
            return Err("it has no value".to_string());
        }
        let mut seen = BTreeSet::new();
        for value in &axis.values {
            if !seen.insert(value.to_string()) {
                return Err(format!("{value} is there twice"));
            }
            axis.takes(value)?;
        }
        Ok(axis)
    }

    /// Refuses a value that is not of the axis's kind.
    fn takes(&self, value: &Value) -> Result<(), String> {
        let (fits, expected) = match self.what {
            What::Machine | What::Workload | What::Era | What::Arm => {
                (value.is_str(), "a text in quotes")
            }
            What::Hz | What::Seed => (value.as_integer().is_some_and(|n| n >= 0), "a whole number"),
            What::OfMachine(_) => {
                (!value.is_table() && !value.is_datetime(), "a number, a text or a list")
            }
            What::OfWorkload(_) => (
                value.is_integer() || value.is_str() || value.is_bool(),
                "a whole number or a text",
            ),
        };
        if fits { Ok(()) } else { Err(format!("{value}: expected {expected}")) }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns a value, and what stands for it in tables.
    pub fn at(&self, index: usize) -> (Value, Value) {
        let value = self.values[index].clone();
        let label = self.labels.get(index).map(|label| Value::String(label.clone()));
        (label.unwrap_or_else(|| value.clone()), value)
    }

    /// Gives a simulation this value. Keys of the workload are added to `keys` instead: they follow
    /// the workload, whichever axis says that.
    pub fn apply(
        &self,
        value: &Value,
        simulation: &mut Simulation,
        keys: &mut Vec<(String, String)>,
    ) -> Result<(), &'static str> {
        let text = || match value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        match &self.what {
            What::Machine => simulation.machine = text(),
            What::OfMachine(key) => {
                simulation.changed.insert(key.clone(), value.clone());
            }
            What::Workload => simulation.workload = text(),
            What::OfWorkload(key) => keys.push((key.clone(), text())),
            What::Era => simulation.era = text(),
            What::Hz => {
                let hz = value.as_integer().and_then(|hz| u32::try_from(hz).ok());
                simulation.hz = hz.ok_or("expected a whole number below 2^32")?;
            }
            What::Arm => simulation.modes = text(),
            What::Seed => {
                let seed = value.as_integer().and_then(|seed| u64::try_from(seed).ok());
                simulation.seed = seed.ok_or("expected a whole number")?;
            }
        }
        Ok(())
    }
}

impl Range {
    fn ends(&self) -> Result<(f64, f64), String> {
        let number = |value: &Value| match value {
            Value::Integer(number) => Some(*number as f64),
            Value::Float(number) => Some(*number).filter(|number| number.is_finite()),
            _ => None,
        };
        match (number(&self.from), number(&self.to)) {
            (Some(from), Some(to)) if from > to => {
                Err(format!("from {from} is greater than to {to}"))
            }
            (Some(from), Some(_)) if self.scale == Scale::Log && from <= 0.0 => {
                Err(format!("from {from}: expected more than 0 on a logarithmic scale"))
            }
            (Some(from), Some(to)) => Ok((from, to)),
            _ => Err("from and to: expected numbers".to_string()),
        }
    }

    /// True where all values are whole numbers, because both ends are.
    fn is_whole(&self) -> bool {
        self.from.is_integer() && self.to.is_integer()
    }

    /// Returns the value at a part of the way, 0 to 1.
    fn at(&self, part: f64) -> Result<Value, String> {
        let (from, to) = self.ends()?;
        let value = match self.scale {
            Scale::Linear => from + part * (to - from),
            Scale::Log => from * libm::pow(to / from, part),
        };
        Ok(if self.is_whole() { Value::Integer(value.round() as i64) } else { Value::Float(value) })
    }

    fn values(&self) -> Result<Vec<Value>, String> {
        let (from, to) = self.ends()?;
        let mut values = match (&self.step, self.points) {
            (Some(_), Some(_)) => return Err("step and points exclude each other".to_string()),
            (Some(Value::Integer(step)), None) if self.is_whole() && *step > 0 => {
                let count = ((to - from) / *step as f64) as usize;
                self.counted(count)?;
                (0..=count as i64).map(|n| Value::Integer(from as i64 + n * step)).collect()
            }
            (Some(Value::Float(step)), None) if *step > 0.0 => {
                // A last step that lands beside the end by rounding is the end.
                let count = ((to - from) / step + 1e-9) as usize;
                self.counted(count)?;
                (0..=count).map(|n| Value::Float(from + n as f64 * step)).collect()
            }
            (Some(step), None) => {
                let expected = "expected a number above 0, whole where from and to are";
                return Err(format!("step {step}: {expected}"));
            }
            (None, Some(points)) => {
                self.counted(points as usize)?;
                let last = points.saturating_sub(1).max(1);
                let parts = (0..points).map(|n| f64::from(n) / f64::from(last));
                parts.map(|part| self.at(part)).collect::<Result<Vec<_>, _>>()?
            }
            // Of a design, which draws its own values.
            (None, None) => vec![self.at(0.0)?, self.at(1.0)?],
        };
        values.dedup();
        Ok(values)
    }

    fn counted(&self, count: usize) -> Result<(), String> {
        let refused = || format!("{count} values: expected less than {MOST_VALUES}");
        if count < MOST_VALUES { Ok(()) } else { Err(refused()) }
    }
}

/// A Latin hypercube: each axis is cut into as many equal parts as there are points, and each part
/// has one point.
#[derive(Clone, Debug)]
pub(super) struct Design {
    axes: Vec<Axis>,
    /// The values, by point and axis.
    drawn: Vec<Vec<Value>>,
}

impl Design {
    pub fn new(
        axes: Vec<Axis>,
        points: u32,
        seed: u64,
        origin: &str,
    ) -> Result<Design, ExperimentError> {
        if !(1..MOST_VALUES as u32).contains(&points) || axes.is_empty() {
            let reason = format!("expected 1 to {MOST_VALUES} points, and axes in [design.axes]");
            return Err(ExperimentError::key(origin, "design.points", reason));
        }
        if points as usize * axes.len() > MOST_DRAWN {
            let reason = format!(
                "{points} points of {} axes: expected at most {MOST_DRAWN} values",
                axes.len()
            );
            return Err(ExperimentError::key(origin, "design.points", reason));
        }
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut drawn = vec![Vec::new(); points as usize];
        for axis in &axes {
            if axis.what == What::Arm {
                let reason = "an arm is not an axis of a design: all points need all arms";
                return Err(ExperimentError::key(origin, "design.axes.arm", reason));
            }
            let mut order: Vec<u32> = (0..points).collect();
            for at in (1..order.len()).rev() {
                order.swap(at, below(&mut random, at as u64 + 1) as usize);
            }
            for (point, part) in drawn.iter_mut().zip(order) {
                let within = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
                let part = (f64::from(part) + within) / f64::from(points);
                let value = match &axis.range {
                    Some(range) => (range.at(part))
                        .map_err(|reason| ExperimentError::key(origin, &axis.name, reason))?,
                    None => axis.values[(part * axis.len() as f64) as usize % axis.len()].clone(),
                };
                point.push(value);
            }
        }
        Ok(Design { axes, drawn })
    }

    pub fn axes(&self) -> impl Iterator<Item = &Axis> {
        self.axes.iter()
    }

    pub fn points(&self) -> usize {
        self.drawn.len()
    }

    /// Returns a point's values, each with what stands for it in tables.
    pub fn point(&self, index: usize) -> Vec<(Value, Value)> {
        let values = self.drawn[index].iter();
        values.map(|value| (value.clone(), value.clone())).collect()
    }
}

/// Draws a whole number below `end`, each as likely but for one part in 2^50.
fn below(random: &mut Xoshiro256PlusPlus, end: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(end)) >> 64) as u64
}

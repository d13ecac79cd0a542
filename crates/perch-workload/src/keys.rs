// SPDX-License-Identifier: GPL-2.0-or-later
//! The keys of a workload's spec.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::CpuMask;

use crate::words::INSIDE;
use crate::{Budget, Demand, SpecError, UNCLAMPED};

/// The keys of a spec. A builder takes out, one by one, the keys that it knows; a key that is left
/// at the end is an error.
pub(crate) struct Keys<'a> {
    left: BTreeMap<String, String>,
    known: Vec<&'static str>,
    pub machine: &'a Machine,
    /// The memory that the workload may take.
    pub budget: Budget,
    /// The file that the spec names; empty for a workload without a file.
    pub file: String,
}

impl<'a> Keys<'a> {
    pub fn parse(text: &str, machine: &'a Machine, budget: Budget) -> Result<Keys<'a>, SpecError> {
        let mut left = BTreeMap::new();
        // The spec of a workload inside another one has commas of its own.
        let inside = match text.strip_prefix("inside=") {
            Some(inside) => Some(("", inside)),
            None => text.split_once(",inside="),
        };
        let text = match inside {
            Some((outside, inside)) => {
                left.insert(INSIDE.to_string(), inside.to_string());
                outside
            }
            None => text,
        };
        for part in text.split(',').filter(|p| !p.is_empty()) {
            let (key, value) = part.split_once('=').ok_or_else(|| SpecError::NoKeyValue {
                part: part.to_string(),
            })?;
            if left.insert(key.to_string(), value.to_string()).is_some() {
                return Err(SpecError::KeyTwice {
                    key: key.to_string(),
                });
            }
        }
        Ok(Keys {
            left,
            known: Vec::new(),
            machine,
            budget,
            file: String::new(),
        })
    }

    /// Takes out the text of a key; `None` if the spec does not give the key.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        self.known.push(key);
        self.left.remove(key)
    }

    /// Takes out a number from `low` to `high`; the default if the spec does not give the key.
    ///
    /// # Errors
    /// A text that is not such a number.
    pub fn number<T>(
        &mut self,
        key: &'static str,
        default: T,
        low: T,
        high: T,
    ) -> Result<T, SpecError>
    where
        T: FromStr + PartialOrd + Into<i128>,
    {
        let Some(text) = self.text(key) else {
            return Ok(default);
        };
        match text.parse::<T>() {
            Ok(value) if value >= low && value <= high => Ok(value),
            _ => Err(SpecError::Number {
                key,
                value: text,
                low: low.into(),
                high: high.into(),
            }),
        }
    }

    /// Takes out a number, as [`Keys::number`] does, of a key that has several names.
    ///
    /// # Errors
    /// A text that is not such a number, or a spec that gives the key by two of its names.
    pub fn number_of(
        &mut self,
        names: &[&'static str],
        default: u64,
        low: u64,
        high: u64,
    ) -> Result<u64, SpecError> {
        self.known.extend(names);
        let given: Vec<_> = names
            .iter()
            .filter(|&&n| self.left.contains_key(n))
            .collect();
        match given[..] {
            [] => Ok(default),
            [name] => self.number(name, default, low, high),
            _ => Err(SpecError::Synonyms {
                names: names.to_vec(),
            }),
        }
    }

    /// Takes out `where`, and returns the CPUs that it names: `all`, `node0`, `node0-1` or
    /// `cpu0-31`.
    ///
    /// # Errors
    /// A text that names none of the machine's CPUs or nodes.
    pub fn cpus(&mut self) -> Result<Arc<CpuMask>, SpecError> {
        let n = self.machine.cpus.len();
        let text = self.text("where").unwrap_or_else(|| "all".to_string());
        let expected = || SpecError::Where {
            value: text.clone(),
            last_node: self.machine.nodes() - 1,
            last_cpu: n - 1,
        };
        let range = |text: &str, end: usize| -> Option<std::ops::RangeInclusive<usize>> {
            let (low, high) = text.split_once('-').unwrap_or((text, text));
            let (low, high) = (low.parse().ok()?, high.parse().ok()?);
            (low <= high && high < end).then_some(low..=high)
        };
        let mask = if text == "all" {
            CpuMask::full(n)
        } else if let Some(rest) = text.strip_prefix("node") {
            let nodes = range(rest, self.machine.nodes()).ok_or_else(expected)?;
            let cpus = self.machine.cpus.iter().enumerate();
            let inside = cpus.filter(|(_, c)| nodes.contains(&(c.node as usize)));
            CpuMask::of(n, inside.map(|(cpu, _)| cpu))
        } else if let Some(rest) = text.strip_prefix("cpu") {
            CpuMask::of(n, range(rest, n).ok_or_else(expected)?)
        } else {
            return Err(expected());
        };
        if mask.weight() == 0 {
            return Err(SpecError::NoCpus { value: text });
        }
        Ok(Arc::new(mask))
    }

    /// Takes out the two keys that clamp the utilisation of every task, least and greatest, as
    /// `uclampset` does for the tasks that it starts; `None` if the spec gives neither.
    pub fn uclamp(&mut self) -> Result<Option<(u32, u32)>, SpecError> {
        let given = ["uclamp_min", "uclamp_max"]
            .iter()
            .any(|key| self.left.contains_key(*key));
        let min = self.number("uclamp_min", UNCLAMPED.0, 0, 1024)?;
        let max = self.number("uclamp_max", UNCLAMPED.1, 0, 1024)?;
        if min > max {
            return Err(SpecError::Clamps { min, max });
        }
        Ok(given.then_some((min, max)))
    }

    /// Refuses a workload that would take too much memory, before a builder allocates anything for
    /// it: `asked` are the keys that its size depends on, with their values.
    ///
    /// # Errors
    /// A demand that is over the budget.
    pub fn afford(
        &self,
        asked: &[(&str, &dyn std::fmt::Display)],
        demand: Demand,
    ) -> Result<(), SpecError> {
        let asked = asked.iter().map(|(key, value)| format!("{key}={value}"));
        let asked = asked.collect::<Vec<_>>().join(" and ");
        let cpus = self.machine.cpus.len() as u64;
        Ok(self.budget.check(&asked, Demand { cpus, ..demand })?)
    }

    /// Refuses a key that the builder `name` has not taken out.
    pub fn all_used(&self, name: &'static str) -> Result<(), SpecError> {
        match self.left.keys().next() {
            None => Ok(()),
            Some(key) => Err(SpecError::UnknownKey {
                name,
                key: key.clone(),
                known: self.known.clone(),
            }),
        }
    }
}

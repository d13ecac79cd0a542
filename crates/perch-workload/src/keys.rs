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
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| SpecError::NoKeyValue { part: part.to_string() })?;
            if left.insert(key.to_string(), value.to_string()).is_some() {
                return Err(SpecError::KeyTwice { key: key.to_string() });
            }
        }
        Ok(Keys { left, known: Vec::new(), machine, budget, file: String::new() })
    }

    /// Takes out the text of a key; `None` if the spec does not give the key.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        self.known.push(key);
        self.left.remove(key)
    }

    /// Takes out `yes` or `no`, which is the default.
    ///
    /// # Errors
    /// Refuses any other value.
    pub fn is_on(&mut self, key: &'static str) -> Result<bool, SpecError> {
        match self.text(key).as_deref() {
            None | Some("no") => Ok(false),
            Some("yes") => Ok(true),
            Some(value) => Err(SpecError::YesNo { key, value: value.to_string() }),
        }
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
            _ => Err(SpecError::Number { key, value: text, low: low.into(), high: high.into() }),
        }
    }

    /// Takes out a number of tasks, of pairs or of groups: a number as [`Keys::number`] takes it, or
    /// `N%` of the CPUs that `where` names, rounded and at least `low`.
    ///
    /// # Errors
    /// A text that is neither, or a share that comes to more than `high`.
    pub fn count(
        &mut self,
        key: &'static str,
        default: u64,
        low: u64,
        high: u64,
    ) -> Result<u64, SpecError> {
        match self.share(key) {
            None => self.number(key, default, low, high),
            Some(text) => {
                let place = self.place()?;
                share_of(&place, key, text, high).map(|count| count.max(low))
            }
        }
    }

    /// Takes out the text of a key that is a share of the CPUs: `50%`.
    pub fn share(&mut self, key: &'static str) -> Option<String> {
        let is_share = self.left.get(key).is_some_and(|text| text.ends_with('%'));
        is_share.then(|| self.text(key)).flatten()
    }

    /// Takes out a number, as [`Keys::count`] does, of a key that has several names.
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
        let given: Vec<_> = names.iter().filter(|&&n| self.left.contains_key(n)).collect();
        match given[..] {
            [] => Ok(default),
            [name] => self.count(name, default, low, high),
            _ => Err(SpecError::Synonyms { names: names.to_vec() }),
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

    /// Returns the CPUs that `where` names, and leaves the key to the builder.
    ///
    /// # Errors
    /// As [`Keys::cpus`].
    pub fn place(&mut self) -> Result<Arc<CpuMask>, SpecError> {
        let given = self.left.get("where").cloned();
        let known = self.known.len();
        let cpus = self.cpus()?;
        self.known.truncate(known);
        self.left.extend(given.map(|text| ("where".to_string(), text)));
        Ok(cpus)
    }

    /// Takes out the two keys that clamp the utilisation of every task, least and greatest, as
    /// `uclampset` does for the tasks that it starts; `None` if the spec gives neither.
    pub fn uclamp(&mut self) -> Result<Option<(u32, u32)>, SpecError> {
        let given = ["uclamp_min", "uclamp_max"].iter().any(|key| self.left.contains_key(*key));
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
            Some(key) => {
                Err(SpecError::UnknownKey { name, key: key.clone(), known: self.known.clone() })
            }
        }
    }
}

/// Returns how many `N%` of the CPUs are, rounded, at least 1 and at most `high`.
///
/// # Errors
/// Another text, or more than `high`.
pub(crate) fn share_of(
    place: &CpuMask,
    key: &'static str,
    value: String,
    high: u64,
) -> Result<u64, SpecError> {
    let cpus = place.weight() as u64;
    let percent = value.strip_suffix('%').and_then(|text| text.parse::<u32>().ok());
    let count = percent.map(|percent| ((cpus * u64::from(percent) + 50) / 100).max(1));
    count.filter(|count| *count <= high).ok_or(SpecError::Share { key, value, high, cpus })
}

#[cfg(test)]
mod tests {
    use crate::Workload;

    fn tasks(spec: &str) -> Result<usize, String> {
        let machine = perch_machine::resolve("kunpeng920").unwrap();
        let workload = Workload::parse(spec, &machine).map_err(|error| error.to_string())?;
        Ok(workload.tasks.len())
    }

    #[test]
    fn numbers_of_tasks_may_be_shares_of_the_cpus_they_run_on() {
        for (spec, same) in [
            ("pipe:pairs=50%", "pipe:pairs=64"),
            ("tbench:where=node0,n=25%", "tbench:where=node0,n=8"),
            ("sysbench:threads=110%,where=cpu0-9", "sysbench:threads=11"),
            ("schbench:n=75%,where=node1", "schbench:n=24"),
            ("runsleep:tasks=200%", "runsleep:tasks=2/cpu"),
            ("hackbench:groups=1%,where=node0", "hackbench:groups=1"),
        ] {
            assert_eq!(tasks(spec), tasks(same), "{spec}");
        }
        let error = tasks("pipe:pairs=many%").unwrap_err();
        assert!(error.contains("pairs=many%: expected a percentage of 128"), "{error}");
        let error = tasks("sysbench:threads=4000000000%").unwrap_err();
        assert!(error.contains("at most"), "{error}");
        // Times are no shares.
        let error = tasks("runsleep:run_us=50%").unwrap_err();
        assert!(error.contains("expected a whole number"), "{error}");
    }

    #[test]
    fn any_workload_may_have_hogs_beside_it() {
        let alone = tasks("schbench:n=4,where=node0").unwrap();
        let beside = tasks("schbench:n=4,where=node0,hogs=50%,hogs_nice=5").unwrap();
        assert_eq!(beside, alone + 16);
        // A virtual machine's are in groups of their own.
        assert!(tasks("vm:hogs=2x2").is_ok());
        let error = tasks("pipe:hogs=2x2").unwrap_err();
        assert!(error.contains("hogs=2x2: expected a whole number"), "{error}");
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Machines some of whose values a simulation changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use perch_machine::{Machine, library};
use perch_policy::Topology;

use crate::error::SweepError;
use crate::simulation::digest;

/// The library's machines for which this process was asked. Reading a machine and laying out its
/// topology takes longer than simulating a millisecond of a pipe, and a Python program calls for one
/// simulation at a time. The program holds the library, so that a machine in it stays as it is; the
/// file of another machine may change between two simulations, and is read for each.
static LIBRARY: Mutex<BTreeMap<&'static str, Known>> = Mutex::new(BTreeMap::new());

/// A machine, and what it is in a key.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// The machine as it is named.
    pub base: Arc<Machine>,
    /// The machine with all that is changed.
    pub machine: Arc<Machine>,
    /// The changed machine as the kernel sees it.
    pub topology: Arc<Topology>,
    /// The digest of its text.
    pub digest: String,
}

impl Known {
    /// Returns a machine with some of its file's values changed.
    pub fn new(
        base: Machine,
        changes: &BTreeMap<String, toml::Value>,
        origin: &str,
    ) -> Result<Known, SweepError> {
        let base = Arc::new(base);
        let machine = match changes.is_empty() {
            true => Arc::clone(&base),
            false => Arc::new(changed(&base, changes, origin)?),
        };
        Ok(Known {
            digest: digest(machine.to_toml().as_bytes()),
            topology: Topology::new(&machine),
            base,
            machine,
        })
    }

    /// Returns the library's machine of that name, as long as the library has one.
    pub fn of_library(name: &str) -> Option<Result<Known, SweepError>> {
        let name = library::names().find(|known| *known == name)?;
        // Whoever panicked while it held the lock left a map of whole machines.
        let mut known = LIBRARY.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(name) {
            return Some(Ok(found.clone()));
        }
        let made = library::load(name).map_err(SweepError::from);
        let made = made.and_then(|base| Known::new(base, &BTreeMap::new(), name));
        if let Ok(made) = &made {
            known.insert(name, made.clone());
        }
        Some(made)
    }

    /// Returns the machine with some of its file's values changed.
    pub fn with(
        self,
        changes: &BTreeMap<String, toml::Value>,
        origin: &str,
    ) -> Result<Known, SweepError> {
        match changes.is_empty() {
            true => Ok(self),
            false => Known::new(Machine::clone(&self.base), changes, origin),
        }
    }

    /// Returns the number of its CPUs.
    pub fn cpus(&self) -> usize {
        self.machine.cpus.len()
    }
}

/// Returns the machine with some of its file's values changed.
fn changed(
    base: &Machine,
    changes: &BTreeMap<String, toml::Value>,
    origin: &str,
) -> Result<Machine, SweepError> {
    let mut machine = base.clone();
    for (key, value) in changes {
        let refused = |reason: String| SweepError::key(origin, key, reason);
        let mut table: toml::Table =
            toml::from_str(&machine.to_toml()).expect("perch reads the machines that it writes");
        let is_same = read(&table, key) == Some(value);
        set(&mut table, key, value.clone()).map_err(refused)?;
        let text = toml::to_string(&table).expect("a table of TOML");
        let named = format!("{} with {key} = {value}", base.name);
        let made = Machine::from_toml_str(&text, &named)
            .map_err(|error| refused(format!("machine {} does not take it: {error}", base.name)))?;
        if made == machine && !is_same {
            return Err(refused(format!(
                "machine {} has no such value; perch machine show --toml {0} prints those that it has",
                base.name
            )));
        }
        machine = made;
    }
    Ok(machine)
}

/// Returns the value at a dotted key.
fn read<'a>(table: &'a toml::Table, key: &str) -> Option<&'a toml::Value> {
    match key.split_once('.') {
        None => table.get(key),
        Some((first, rest)) => read(table.get(first)?.as_table()?, rest),
    }
}

/// Sets the value at a dotted key; makes the tables on the way to it.
fn set(table: &mut toml::Table, key: &str, value: toml::Value) -> Result<(), String> {
    let Some((first, rest)) = key.split_once('.') else {
        table.insert(key.to_string(), value);
        return Ok(());
    };
    let inner = table
        .entry(first)
        .or_insert_with(|| toml::Value::Table(toml::Table::new()));
    match inner.as_table_mut() {
        Some(inner) => set(inner, rest, value),
        None => Err(format!("`{first}` is no table of the machine's file")),
    }
}

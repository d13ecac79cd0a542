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

/// Machines that were made of a text or of changes, the one that was used last at the end. A worker
/// of a sweep gets simulations one by one, and few machines among many of them: to make a machine of
/// 128 CPUs anew each time took as long as simulating 2 ms of it.
static MADE: Mutex<Vec<(String, Known)>> = Mutex::new(Vec::new());
/// As many as a sensitivity analysis or an axis of a sweep goes through before it returns to one.
const MOST_MADE: usize = 64;
/// The sum of their CPUs. The masks of a topology grow with the square: a machine of 8192 CPUs takes
/// some 100 MB.
const MOST_MADE_CPUS: usize = 16_384;

/// The most parts of a value's dotted name: none lies deeper than three.
const MOST_DEEP: usize = 8;

/// Refuses a dotted name of more parts, before anything walks down it.
pub(crate) fn check_depth(name: &str, origin: &str) -> Result<(), SweepError> {
    if name.split('.').count() <= MOST_DEEP {
        return Ok(());
    }
    let short: String = name.chars().take(60).collect();
    let reason = format!("expected a name of at most {MOST_DEEP} parts");
    Err(SweepError::key(origin, format!("{short}…"), reason))
}

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
        let machine = if changes.is_empty() {
            Arc::clone(&base)
        } else {
            Arc::new(changed(&base, changes, origin)?)
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

    /// Returns the library's machine of that name with some of its values changed, as long as the
    /// library has one.
    pub fn of_library_with(
        name: &str,
        changes: &BTreeMap<String, toml::Value>,
        origin: &str,
    ) -> Option<Result<Known, SweepError>> {
        let known = Known::of_library(name)?;
        if changes.is_empty() {
            return Some(known);
        }
        Some(known.and_then(|known| {
            Known::made(format!("{name} {changes:?}"), || {
                Known::new(Machine::clone(&known.base), changes, origin)
            })
        }))
    }

    /// Returns the machine of a text, with some of its values changed.
    pub fn of_text(
        text: &str,
        changes: &BTreeMap<String, toml::Value>,
        origin: &str,
    ) -> Result<Known, SweepError> {
        // No name of the library begins so.
        Known::made(format!("\n{text}\n{changes:?}"), || {
            let base = Machine::from_toml_str(text, "machine_toml")?;
            Known::new(base, changes, origin)
        })
    }

    /// Returns the machine under a key that says everything about it; makes it where it is not kept.
    fn made(
        key: String,
        make: impl FnOnce() -> Result<Known, SweepError>,
    ) -> Result<Known, SweepError> {
        let lock = || MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = lock();
        if let Some(at) = kept.iter().rposition(|(known, _)| *known == key) {
            let last = kept.len() - 1;
            kept[at..].rotate_left(1);
            return Ok(kept[last].1.clone());
        }
        // Other threads need their machines meanwhile. Two may make the same one, which is as good.
        drop(kept);
        let made = make()?;
        let mut kept = lock();
        kept.push((key, made.clone()));
        let mut cpus: usize = kept.iter().map(|(_, known)| known.cpus()).sum();
        while kept.len() > 1 && (kept.len() > MOST_MADE || cpus > MOST_MADE_CPUS) {
            cpus -= kept.remove(0).1.cpus();
        }
        Ok(made)
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
        check_depth(key, origin)?;
        let mut table: toml::Table =
            toml::from_str(&machine.to_toml()).expect("perch reads the machines that it writes");
        let is_same = read(&table, key) == Some(value);
        set(&mut table, key, value.clone())
            .map_err(|key| refused(format!("`{key}` is not a table of the machine's file")))?;
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

/// Sets the value at a dotted key; makes the tables on the way to it. An error is the part of the key
/// that is no table.
fn set<'a>(table: &mut toml::Table, key: &'a str, value: toml::Value) -> Result<(), &'a str> {
    let Some((first, rest)) = key.split_once('.') else {
        table.insert(key.to_string(), value);
        return Ok(());
    };
    let inner = table
        .entry(first)
        .or_insert_with(|| toml::Value::Table(toml::Table::new()));
    match inner.as_table_mut() {
        Some(inner) => set(inner, rest, value),
        None => Err(first),
    }
}

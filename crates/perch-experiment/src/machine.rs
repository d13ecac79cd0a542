// SPDX-License-Identifier: GPL-2.0-or-later
//! Machines some of whose values a simulation changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use perch_machine::{Machine, library};
use perch_policy::Topology;

use crate::error::ExperimentError;
use crate::simulation::digest;

/// Machines of the library and of texts, with and without changes, the one that was used last at the
/// end. A worker of a sweep, and a Python program, get simulations one by one, and few machines among
/// many of them: to make a machine of 128 CPUs anew each time took as long as simulating 2 ms of it.
/// The file of a machine may change between two simulations, and is read for each.
static MADE: Mutex<Vec<(Name, Known)>> = Mutex::new(Vec::new());
/// The most CPUs of these machines together, 256 bytes each: 64 MiB. One of 8192 CPUs took 2.1 MB, one of
/// 16 some 20 kB, as what all machines have weighs as much as [`COMMON_CPUS`].
const MOST_CPUS: usize = 1 << 18;
const COMMON_CPUS: usize = 64;

/// The changes, and the text of a machine or the name of one of the library behind `library:`.
type Name = (String, String);

/// The most parts of a value's dotted name: none lies deeper than three.
const MOST_DEEP: usize = 8;

/// Refuses a dotted name of more parts, before anything walks down it.
pub(crate) fn check_depth(name: &str, origin: &str) -> Result<(), ExperimentError> {
    if name.split('.').count() <= MOST_DEEP {
        return Ok(());
    }
    let short: String = name.chars().take(60).collect();
    let reason = format!("expected a name of at most {MOST_DEEP} parts");
    Err(ExperimentError::key(origin, format!("{short}…"), reason))
}

/// A machine as it is named.
#[derive(Debug)]
pub(crate) struct Base {
    machine: Arc<Machine>,
    /// Its file.
    pub text: String,
    /// The file's values, for machines in which some of them differ.
    values: OnceLock<toml::Table>,
}

impl Base {
    pub fn new(machine: Machine) -> Base {
        Base { text: machine.to_toml(), machine: Arc::new(machine), values: OnceLock::new() }
    }
}

/// A machine, and what it is in a key.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// The machine as it is named.
    pub base: Arc<Base>,
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
        base: Arc<Base>,
        changes: &BTreeMap<String, toml::Value>,
        origin: &str,
    ) -> Result<Known, ExperimentError> {
        let (machine, digest) = if changes.is_empty() {
            (Arc::clone(&base.machine), digest(base.text.as_bytes()))
        } else {
            let machine = changed(&base, changes, origin)?;
            let text = machine.to_toml();
            (Arc::new(machine), digest(text.as_bytes()))
        };
        Ok(Known { topology: Topology::new(&machine), digest, base, machine })
    }

    /// Returns the library's machine of that name, with some of its values changed, as long as the
    /// library has one.
    pub fn of_library(
        name: &str,
        changes: &BTreeMap<String, toml::Value>,
        origin: &str,
    ) -> Option<Result<Known, ExperimentError>> {
        library::names().find(|known| *known == name)?;
        let load = || Ok(library::load(name)?);
        Some(Known::with(format!("library:{name}"), changes, origin, load))
    }

    /// Returns the machine of a text, with some of its values changed.
    pub fn of_text(
        text: &str,
        changes: &BTreeMap<String, toml::Value>,
        origin: &str,
    ) -> Result<Known, ExperimentError> {
        let read = || Ok(Machine::from_toml_str(text, "machine_toml")?);
        Known::with(text.to_string(), changes, origin, read)
    }

    /// Returns the machine that is kept by `name`, else the one that `load` finds, with some of its
    /// values changed.
    fn with(
        name: String,
        changes: &BTreeMap<String, toml::Value>,
        origin: &str,
        load: impl FnOnce() -> Result<Machine, ExperimentError>,
    ) -> Result<Known, ExperimentError> {
        let unchanged = BTreeMap::new();
        let base = Known::made((format!("{unchanged:?}"), name.clone()), || {
            Known::new(Base::new(load()?).into(), &unchanged, origin)
        });
        if changes.is_empty() {
            return base;
        }
        let base = base?.base;
        Known::made((format!("{changes:?}"), name), || Known::new(base, changes, origin))
    }

    /// Returns the machine of that name; makes it where it is not kept.
    fn made(
        name: Name,
        make: impl FnOnce() -> Result<Known, ExperimentError>,
    ) -> Result<Known, ExperimentError> {
        let lock = || MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = lock();
        if let Some(at) = kept.iter().rposition(|(known, _)| *known == name) {
            let last = kept.len() - 1;
            kept[at..].rotate_left(1);
            return Ok(kept[last].1.clone());
        }
        // Other threads need their machines meanwhile. Two may make the same one, which is as good.
        drop(kept);
        let made = make()?;
        keep(&mut lock(), name, made.clone(), MOST_CPUS);
        Ok(made)
    }

    /// Returns the number of its CPUs.
    pub fn cpus(&self) -> usize {
        self.machine.cpus.len()
    }
}

/// Adds a machine, and removes those that were not used for longest until there are `most` CPUs or it
/// alone.
fn keep(kept: &mut Vec<(Name, Known)>, name: Name, made: Known, most: usize) {
    kept.push((name, made));
    let cpus = |known: &Known| COMMON_CPUS + known.cpus();
    let mut all: usize = kept.iter().map(|(_, known)| cpus(known)).sum();
    while all > most && kept.len() > 1 {
        all -= cpus(&kept.remove(0).1);
    }
}

/// Returns the machine with some of its file's values changed.
fn changed(
    base: &Base,
    changes: &BTreeMap<String, toml::Value>,
    origin: &str,
) -> Result<Machine, ExperimentError> {
    let (mut machine, name) = (Machine::clone(&base.machine), &base.machine.name);
    let read_values =
        || toml::from_str(&base.text).expect("perch reads the machines that it writes");
    let mut table = base.values.get_or_init(read_values).clone();
    for (key, value) in changes {
        let refused = |reason: String| ExperimentError::key(origin, key, reason);
        check_depth(key, origin)?;
        let is_same = read(&table, key) == Some(value);
        set(&mut table, key, value.clone())
            .map_err(|key| refused(format!("`{key}` is not a table of the machine's file")))?;
        let text = toml::to_string(&table).expect("a table of TOML");
        let named = format!("{name} with {key} = {value}");
        let made = Machine::from_toml_str(&text, &named)
            .map_err(|error| refused(format!("machine {name} does not take it: {error}")))?;
        if made == machine && !is_same {
            return Err(refused(format!(
                "machine {name} has no such value; perch machine show --toml {name} prints those that it has"
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
    let inner = table.entry(first).or_insert_with(|| toml::Value::Table(toml::Table::new()));
    match inner.as_table_mut() {
        Some(inner) => set(inner, rest, value),
        None => Err(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_beyond_the_bound_make_room() {
        let known = Known::of_library("x5570", &BTreeMap::new(), "x").unwrap().unwrap();
        let mut kept = Vec::new();
        for n in 0..1000 {
            let name = (n.to_string(), String::new());
            keep(&mut kept, name, known.clone(), 10 * (COMMON_CPUS + known.cpus()));
        }
        let names: Vec<_> = kept.iter().map(|((name, _), _)| name.as_str()).collect();
        assert_eq!((kept.len(), names[0]), (10, "990"));
        keep(&mut kept, Name::default(), known, 0);
        assert_eq!(kept.len(), 1);
    }
}

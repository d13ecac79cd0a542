// SPDX-License-Identifier: GPL-2.0-or-later
//! A reader of JSON files of counts, which refuses whatever perch does not write, by its key.

use std::collections::BTreeMap;

use perch_machine::Distance;
use serde_json::{Map, Value};

use super::task::{Figure, TaskCounts};
use super::{
    Cause, HEAD, LineCounts, LineKind, LineMoves, MODES, Move, SlotCounts, USES, VERSION,
    distance_name,
};
use crate::results::Defect;

/// The most stretches between marks: a page has a table for each.
const MOST_SLOTS: usize = 4096;

/// An object, and the place in the file where it stands.
struct Object<'a> {
    at: String,
    map: &'a Map<String, Value>,
}

/// Returns a value as an error shows it: short.
fn shown(value: &Value) -> String {
    const MOST: usize = 40;
    let text = match value {
        Value::Object(_) => return "an object".to_string(),
        Value::Array(_) => return "a list".to_string(),
        value => value.to_string(),
    };
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl<'a> Object<'a> {
    fn new(at: String, value: &'a Value) -> Result<Object<'a>, Defect> {
        match value {
            Value::Object(map) => Ok(Object { at, map }),
            other => Err(format!("{at}: found {}, expected an object", shown(other)).into()),
        }
    }

    /// Returns the place of a key.
    fn place(&self, key: &str) -> String {
        match self.at.as_str() {
            "" => key.to_string(),
            at => format!("{at}.{key}"),
        }
    }

    /// Refuses keys other than `keys`.
    fn only(&self, keys: &[&str]) -> Result<(), Defect> {
        match self.map.keys().find(|key| !keys.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => Err(format!(
                "{}: no such key, expected one of {}",
                self.place(key),
                keys.join(", ")
            )
            .into()),
        }
    }

    /// Returns what `read` makes of a key's value.
    fn read<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<T, Defect> {
        let place = self.place(key);
        match self.map.get(key) {
            None => Err(format!("{place}: missing, expected {expected}").into()),
            Some(value) => read(value).ok_or_else(|| {
                format!("{place}: found {}, expected {expected}", shown(value)).into()
            }),
        }
    }

    fn text(&self, key: &str) -> Result<String, Defect> {
        self.read(key, "a text", |value| value.as_str().map(str::to_string))
    }

    /// Returns the text of a key that may be missing, which is then empty.
    fn optional(&self, key: &str) -> Result<String, Defect> {
        if self.map.contains_key(key) {
            self.text(key)
        } else {
            Ok(String::new())
        }
    }

    fn whole(&self, key: &str, least: u64, most: u64) -> Result<u64, Defect> {
        let expected = match (least, most) {
            (0, u64::MAX) => "a whole number".to_string(),
            (least, u64::MAX) => format!("a whole number, at least {least}"),
            (least, most) => format!("a whole number, {least} to {most}"),
        };
        self.read(key, &expected, |value| {
            value
                .as_u64()
                .filter(|count| (least..=most).contains(count))
        })
    }

    fn count(&self) -> Result<u64, Defect> {
        self.whole("count", 0, u64::MAX)
    }

    fn list(&self, key: &str) -> Result<&'a [Value], Defect> {
        self.read(key, "a list", |value| value.as_array().map(Vec::as_slice))
    }

    /// Returns the one of `all` that has the key's text as its name.
    fn one_of<T: Copy>(&self, key: &str, all: &[(&str, T)]) -> Result<T, Defect> {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        let expected = format!("one of {}", names.join(", "));
        self.read(key, &expected, |value| {
            let found = all.iter().find(|(name, _)| value.as_str() == Some(name));
            found.map(|(_, one)| *one)
        })
    }

    /// Returns the number of the record's mode.
    fn mode(&self) -> Result<usize, Defect> {
        self.one_of("mode", &[(MODES[0], 0), (MODES[1], 1)])
    }

    /// Returns the CPU that the record's name is.
    fn cpu(&self, cpus: u32) -> Result<u32, Defect> {
        self.read("name", &format!("a CPU, 0 to {}", cpus - 1), |value| {
            let cpu = value.as_str()?.parse::<u32>().ok()?;
            (cpu < cpus).then_some(cpu)
        })
    }

    fn distance(&self) -> Result<Distance, Defect> {
        self.one_of("distance", &Distance::ALL.map(|d| (distance_name(d), d)))
    }

    fn moved(&self) -> Result<Move, Defect> {
        Ok(Move {
            kind: self.one_of("kind", &LineKind::ALL.map(|kind| (kind.name(), kind)))?,
            distance: self.distance()?,
        })
    }

    /// Adds a count, of which there may be one alone.
    fn add<K: Ord>(&self, counts: &mut BTreeMap<K, u64>, key: K) -> Result<(), Defect> {
        match counts.insert(key, self.count()?) {
            None => Ok(()),
            Some(_) => {
                Err(format!("{}: a record above counts the same, expected one", self.at).into())
            }
        }
    }
}

/// Reads the counts of a whole file.
///
/// # Errors
/// Returns the key, its value and what was expected.
pub fn parse(value: &Value) -> Result<LineCounts, Defect> {
    let file = Object::new(String::new(), value)?;
    file.one_of(HEAD.0, &[(HEAD.1, ())])?;
    // Keys of a later version would be refused by their names, which would not tell the reason.
    file.read(
        "version",
        &format!("{VERSION}, the one that this perch reads"),
        |value| (value.as_u64() == Some(VERSION)).then_some(()),
    )?;
    file.only(&[
        HEAD.0,
        "version",
        "perch",
        "command",
        "machine",
        "kernel",
        "scheduler",
        "cpus",
        "slots",
    ])?;
    let cpus = file.whole("cpus", 1, u32::MAX.into())? as u32;
    let slots = file.list("slots")?;
    if slots.len() > MOST_SLOTS {
        let found = slots.len();
        return Err(format!("slots: found {found}, expected {MOST_SLOTS} at most").into());
    }
    let slots = slots.iter().enumerate();
    Ok(LineCounts {
        perch: file.text("perch")?,
        command: file.text("command")?,
        machine: file.text("machine")?,
        kernel: file.text("kernel")?,
        scheduler: file.text("scheduler")?,
        cpus,
        slots: slots
            .map(|(at, value)| slot(Object::new(format!("slots[{at}]"), value)?, cpus))
            .collect::<Result<_, _>>()?,
    })
}

/// A slot of which some records were read.
struct Reading {
    cpus: u32,
    slot: SlotCounts,
    /// By CPU and mode.
    instructions: BTreeMap<(u32, usize), u64>,
    /// By CPU, and data or code.
    used: BTreeMap<(u32, usize), u64>,
    /// The places of tasks in the slot, by name.
    tasks: BTreeMap<String, usize>,
}

fn slot(object: Object, cpus: u32) -> Result<SlotCounts, Defect> {
    object.only(&["slot", "operations", "accesses", "records"])?;
    let mut reading = Reading {
        cpus,
        slot: SlotCounts {
            slot: object.whole("slot", 0, 31)? as u8,
            operations: object.whole("operations", 1, u64::MAX)?,
            accesses: object.whole("accesses", 0, u64::MAX)?,
            ..SlotCounts::default()
        },
        instructions: BTreeMap::new(),
        used: BTreeMap::new(),
        tasks: BTreeMap::new(),
    };
    type Add = fn(&Object, &mut Reading) -> Result<(), Defect>;
    let kinds: [(&str, Add); 8] = [
        ("instructions", instructions),
        ("used", used),
        ("time_ps", time),
        ("moved", moved),
        ("aside", aside),
        ("function", function),
        ("line", line),
        ("task", task),
    ];
    for (at, value) in object.list("records")?.iter().enumerate() {
        let record = Object::new(format!("{}[{at}]", object.place("records")), value)?;
        let add = record.one_of("what", &kinds)?;
        add(&record, &mut reading)?;
    }
    let Reading {
        mut slot,
        instructions,
        used,
        ..
    } = reading;
    // Each count is of a CPU below `cpus` and of one of two modes, so none is missing if there are
    // as many as that.
    if instructions.len() as u64 != 2 * u64::from(cpus) {
        return Err(format!(
            "{}: found {} records of instructions, expected {}: one for users' code and one for \
             the kernel's, of each of {cpus} CPUs",
            object.place("records"),
            instructions.len(),
            2 * u64::from(cpus)
        )
        .into());
    }
    let counts: Vec<u64> = instructions.into_values().collect();
    slot.instructions = counts
        .chunks_exact(2)
        .map(|pair| [pair[0], pair[1]])
        .collect();
    for ((cpu, of), count) in used {
        slot.used.entry(cpu).or_default()[of] = count;
    }
    Ok(slot)
}

fn instructions(record: &Object, reading: &mut Reading) -> Result<(), Defect> {
    record.only(&["what", "name", "mode", "count"])?;
    let of = (record.cpu(reading.cpus)?, record.mode()?);
    record.add(&mut reading.instructions, of)
}

fn used(record: &Object, reading: &mut Reading) -> Result<(), Defect> {
    record.only(&["what", "name", "kind", "count"])?;
    let kind = record.one_of("kind", &[(USES[0], 0), (USES[1], 1)])?;
    let of = (record.cpu(reading.cpus)?, kind);
    record.add(&mut reading.used, of)
}

fn time(record: &Object, reading: &mut Reading) -> Result<(), Defect> {
    let line = |kind| {
        let distance = Distance::Cpu;
        Cause::Line(Move { kind, distance })
    };
    let causes = Cause::OTHERS.into_iter().chain(LineKind::ALL.map(line));
    let causes: Vec<_> = causes.map(|cause| (cause.name(), cause)).collect();
    let mut cause = record.one_of("kind", &causes)?;
    // Lines alone come over a distance.
    if let Cause::Line(moved) = &mut cause {
        record.only(&["what", "name", "kind", "distance", "count"])?;
        moved.distance = record.distance()?;
    } else {
        record.only(&["what", "name", "kind", "count"])?;
    }
    let cpu = record.cpu(reading.cpus)?;
    record.add(reading.slot.time_ps.entry(cpu).or_default(), cause)
}

fn moved(record: &Object, reading: &mut Reading) -> Result<(), Defect> {
    record.only(&["what", "mode", "kind", "distance", "count"])?;
    record.add(&mut reading.slot.moved[record.mode()?], record.moved()?)
}

fn aside(record: &Object, reading: &mut Reading) -> Result<(), Defect> {
    record.only(&["what", "name", "kind", "distance", "count"])?;
    let cpu = record.cpu(reading.cpus)?;
    let moves = reading.slot.aside.entry(cpu).or_default();
    record.add(moves, record.moved()?)
}

fn function(record: &Object, reading: &mut Reading) -> Result<(), Defect> {
    record.only(&["what", "name", "kind", "distance", "count"])?;
    let functions = &mut reading.slot.functions;
    let moves = functions.entry(record.text("name")?).or_default();
    record.add(moves, record.moved()?)
}

fn line(record: &Object, reading: &mut Reading) -> Result<(), Defect> {
    record.only(&["what", "name", "count", "loaded_by", "written_by"])?;
    reading.slot.lines.push(LineMoves {
        name: record.text("name")?,
        moves: record.count()?,
        loaded_by: record.optional("loaded_by")?,
        written_by: record.optional("written_by")?,
    });
    Ok(())
}

fn task(record: &Object, reading: &mut Reading) -> Result<(), Defect> {
    let name = record.text("name")?;
    let kind = record.text("kind")?;
    let slot = &mut reading.slot;
    let at = *reading.tasks.entry(name.clone()).or_insert_with(|| {
        slot.tasks.push(TaskCounts {
            name,
            ..TaskCounts::default()
        });
        slot.tasks.len() - 1
    });
    let task = &mut slot.tasks[at];
    let count = record.count()?;
    if let Some((_, figure)) = Figure::ALL.into_iter().find(|(of, _)| *of == kind) {
        record.only(&["what", "name", "kind", "count"])?;
        *task.figure_mut(figure) = count;
        return Ok(());
    }
    if kind == "instructions" {
        record.only(&["what", "name", "mode", "kind", "count"])?;
        task.instructions[record.mode()?] = count;
        return Ok(());
    }
    // A kind that is none is refused before the keys that its record has.
    let moved = record.moved()?;
    record.only(&["what", "name", "kind", "distance", "count"])?;
    record.add(&mut task.moved, moved)
}

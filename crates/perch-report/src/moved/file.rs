// SPDX-License-Identifier: GPL-2.0-or-later
//! The file of counts. docs/formats.md describes the keys and the columns.

use std::fmt::Write;

use serde::Serialize;
use serde_json::json;

use super::tables::sections;
use super::task::Figure;
use super::{
    Cause, HEAD, LineCounts, MODES, Move, SlotCounts, USES, VERSION, between_cpus, distance_name,
};

/// One figure of a slot.
#[derive(Debug, Default, Serialize)]
struct Record<'a> {
    /// `instructions`, `used`, `time_ps`, `moved`, `aside`,
    /// `function`, `line` or `task`.
    what: &'static str,
    /// A CPU, a function, a line, or a task.
    #[serde(skip_serializing_if = "str::is_empty")]
    name: String,
    /// One of [`MODES`]; empty where both are meant.
    #[serde(skip_serializing_if = "str::is_empty")]
    mode: &'static str,
    /// The way in which lines moved, one of [`USES`], a cause of time, or another figure of a task.
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'static str,
    /// The distance over which lines moved.
    #[serde(skip_serializing_if = "str::is_empty")]
    distance: &'static str,
    count: u64,
    /// The function that loaded a line last.
    #[serde(skip_serializing_if = "str::is_empty")]
    loaded_by: &'a str,
    /// The function that wrote to a line last.
    #[serde(skip_serializing_if = "str::is_empty")]
    written_by: &'a str,
}

impl<'a> Record<'a> {
    fn new(what: &'static str, name: impl ToString, count: u64) -> Record<'a> {
        Record { what, name: name.to_string(), count, ..Record::default() }
    }

    fn of(what: &'static str, name: &str, (moved, count): (&Move, &u64)) -> Record<'a> {
        Record {
            kind: moved.kind.name(),
            distance: distance_name(moved.distance),
            ..Record::new(what, name, *count)
        }
    }
}

/// Returns every figure of a slot but those of its head.
fn records(slot: &SlotCounts) -> Vec<Record<'_>> {
    let mut records = Vec::new();
    for (cpu, counts) in slot.instructions.iter().enumerate() {
        for (mode, count) in MODES.into_iter().zip(counts) {
            let record = Record::new("instructions", cpu, *count);
            records.push(Record { mode, ..record });
        }
    }
    for (cpu, counts) in &slot.used {
        for (kind, count) in USES.into_iter().zip(counts).filter(|(_, count)| **count > 0) {
            let record = Record::new("used", cpu, *count);
            records.push(Record { kind, ..record });
        }
    }
    for (cpu, causes) in &slot.time_ps {
        let of = |(cause, ps): (&Cause, &u64)| match cause {
            Cause::Line(moved) => Record::of("time_ps", &cpu.to_string(), (moved, ps)),
            other => Record { kind: other.name(), ..Record::new("time_ps", cpu, *ps) },
        };
        records.extend(causes.iter().map(of));
    }
    for (mode, moves) in MODES.into_iter().zip(&slot.moved) {
        for moved in moves {
            let record = Record::of("moved", "", moved);
            records.push(Record { mode, ..record });
        }
    }
    for (cpu, moves) in &slot.aside {
        let cpu = cpu.to_string();
        records.extend(moves.iter().map(|moved| Record::of("aside", &cpu, moved)));
    }
    let mut functions: Vec<_> = slot.functions.iter().collect();
    functions.sort_by_key(|(_, moves)| std::cmp::Reverse(between_cpus(moves)));
    for (name, moves) in functions {
        let of_function = moves.iter().map(|moved| Record::of("function", name, moved));
        records.extend(of_function);
    }
    for line in slot.most_moved() {
        records.push(Record {
            loaded_by: &line.loaded_by,
            written_by: &line.written_by,
            ..Record::new("line", &line.name, line.moves)
        });
    }
    for task in &slot.tasks {
        let figures = Figure::ALL.into_iter().map(|(kind, figure)| Record {
            kind,
            ..Record::new("task", &task.name, task.figure(figure))
        });
        records.extend(figures);
        for (mode, count) in MODES.into_iter().zip(task.instructions) {
            let record = Record::new("task", &task.name, count);
            records.push(Record { mode, kind: "instructions", ..record });
        }
        let moved = task.moved.iter();
        records.extend(moved.map(|moved| Record::of("task", &task.name, moved)));
    }
    records
}

impl LineCounts {
    /// Returns tables for a person.
    pub fn text(&self) -> String {
        sections(self)
    }

    /// Returns the text of a file of JSON. Each record has a line of its own, because people search such files
    /// and compare them.
    pub fn json(&self) -> String {
        let text = |value: &str| json!(value).to_string();
        let (key, value) = HEAD;
        let mut json = format!("{{\n  \"{key}\": \"{value}\",\n  \"version\": {VERSION},\n");
        for (key, value) in [
            ("perch", &self.perch),
            ("command", &self.command),
            ("machine", &self.machine),
            ("kernel", &self.kernel),
            ("scheduler", &self.scheduler),
        ] {
            let _ = writeln!(json, "  \"{key}\": {},", text(value));
        }
        let _ = write!(json, "  \"cpus\": {},\n  \"slots\": [", self.cpus);
        for (at, slot) in self.slots.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let _ = write!(
                json,
                "{comma}\n    {{\n      \"slot\": {},\n      \"operations\": {},\n      \
                 \"accesses\": {},\n      \"records\": [",
                slot.slot, slot.operations, slot.accesses
            );
            for (at, record) in records(slot).iter().enumerate() {
                let comma = if at > 0 { "," } else { "" };
                let record = serde_json::to_string(record).expect("a record has only text keys");
                let _ = write!(json, "{comma}\n        {record}");
            }
            json.push_str("\n      ]\n    }");
        }
        json.push_str("\n  ]\n}\n");
        json
    }
}

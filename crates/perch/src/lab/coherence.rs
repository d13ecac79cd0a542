// SPDX-License-Identifier: GPL-2.0-or-later
//! The cache lines that moved between a guest's CPUs, as tables and as files.

use std::collections::BTreeMap;
use std::fmt::Write;

use perch_lab::coherence::{Counted, Kind, Line, Moved, Slot, Symbols};
use perch_machine::Distance;
use perch_report::{Align, Grid, figure};
use serde::Serialize;

use crate::output::Failure;

/// Functions and lines that a table shows; a file has them all.
const SHOWN: usize = 20;

/// The name that all code of users has in tables.
const USERS: &str = "(user)";

/// The counts of a run, and what they are divided by.
pub struct Counts {
    pub counted: Counted,
    pub symbols: Symbols,
    /// Operations of the command, if the user said how many; otherwise those that it marked count,
    /// and without marks all is one operation.
    pub operations: Option<u64>,
}

/// The forms of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Csv,
    Json,
    Markdown,
}

impl Form {
    /// The form that a file's ending names.
    pub fn of(path: &std::path::Path) -> Result<Form, Failure> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("csv") => Ok(Form::Csv),
            Some("json") => Ok(Form::Json),
            Some("md") => Ok(Form::Markdown),
            _ => Err(Failure::input(format!(
                "--counts {}: its ending says how it is written, expected one of .csv, .json, .md",
                path.display()
            ))),
        }
    }
}

/// One figure of a file.
#[derive(Debug, Serialize)]
struct Record {
    /// The slot of the marks.
    slot: u8,
    /// `operations`, `instructions`, `moved`, `function` or `line`.
    what: &'static str,
    /// A CPU, a function, or a line by its address.
    name: String,
    /// `user` or `kernel`; empty where both are meant.
    mode: &'static str,
    /// The way in which lines moved.
    kind: &'static str,
    /// The distance over which lines moved.
    distance: &'static str,
    count: u64,
    per_operation: f64,
}

/// A function, with the moves of all its instructions.
struct Function {
    name: String,
    moved: BTreeMap<Moved, u64>,
}

impl Function {
    fn count(&self, is: impl Fn(&Moved) -> bool) -> u64 {
        let moved = self.moved.iter().filter(|(moved, _)| is(moved));
        moved.map(|(_, count)| count).sum()
    }

    fn between_cpus(&self) -> u64 {
        self.count(|moved| moved.kind.is_between_cpus())
    }
}

/// A distance's name in tables. A line of the same CPU's own came from memory.
fn distance_name(distance: Distance) -> &'static str {
    match distance {
        Distance::Cpu => "memory",
        distance => distance.name(),
    }
}

impl Counts {
    /// Operations of a slot, at least 1.
    fn operations_of(&self, slot: &Slot) -> u64 {
        self.operations.unwrap_or(slot.rounds).max(1)
    }

    /// The function of an instruction.
    fn function(&self, address: u64) -> String {
        match self.symbols.find(address) {
            Some((name, _)) => name.to_string(),
            None if address >> 63 == 0 => USERS.to_string(),
            None => format!("{address:x}"),
        }
    }

    /// The functions of a slot, those with most moves between CPUs first.
    fn functions(&self, slot: &Slot) -> Vec<Function> {
        let mut by_name: BTreeMap<String, BTreeMap<Moved, u64>> = BTreeMap::new();
        for (address, moved) in &slot.code {
            let sums = by_name.entry(self.function(*address)).or_default();
            for (moved, count) in moved {
                *sums.entry(*moved).or_default() += count;
            }
        }
        let functions = by_name.into_iter();
        let mut functions: Vec<Function> = functions
            .map(|(name, moved)| Function { name, moved })
            .collect();
        functions.sort_by_key(|function| std::cmp::Reverse(function.between_cpus()));
        functions
    }

    /// The lines of a slot, those that moved most first.
    fn lines(slot: &Slot) -> Vec<&Line> {
        let mut lines: Vec<&Line> = slot.lines.iter().collect();
        lines.sort_by_key(|line| (std::cmp::Reverse(line.moves), line.physical));
        lines
    }

    /// A line's name: the kernel's variable and the offset in it where the kernel's image has one,
    /// otherwise its address.
    fn line_name(&self, line: &Line) -> String {
        /// Where the kernel's image begins.
        const IMAGE: u64 = 0xffff_ffff_8000_0000;
        match self.symbols.find(line.address) {
            Some((name, offset)) if line.address >= IMAGE => format!("{name}+{offset:#x}"),
            _ => format!("{:x}", line.address),
        }
    }

    /// Tables for a person.
    pub fn text(&self) -> String {
        self.tables("", Grid::text)
    }

    /// The file's text in a form.
    pub fn write(&self, form: Form) -> Result<String, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::run(format!("the counts: {error}"));
        match form {
            Form::Markdown => Ok(self.tables("### ", Grid::markdown)),
            Form::Json => serde_json::to_string_pretty(&self.records())
                .map(|text| text + "\n")
                .map_err(|error| failed(&error)),
            Form::Csv => {
                let mut writer = csv::Writer::from_writer(Vec::new());
                for record in self.records() {
                    writer.serialize(record).map_err(|error| failed(&error))?;
                }
                let bytes = writer.into_inner().map_err(|error| failed(&error))?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
        }
    }

    fn tables(&self, mark: &str, write: fn(&Grid) -> String) -> String {
        let blank = if mark.is_empty() { "" } else { "\n" };
        let mut text = String::new();
        if self.counted.slots.is_empty() {
            return "no stretch between two marks has ended: nothing was counted\n".to_string();
        }
        for slot in &self.counted.slots {
            let operations = self.operations_of(slot);
            let _ = writeln!(
                text,
                "{mark}slot {}: {operations} operations, {} loads and stores{blank}",
                slot.number, slot.accesses
            );
            let per = match operations {
                1 => "in all",
                _ => "an operation",
            };
            for (name, grid) in [
                ("instructions", self.instructions(slot)),
                ("lines moved", self.moves(slot)),
                ("by function", self.by_function(slot)),
                ("by line", self.by_line(slot)),
            ] {
                let _ = writeln!(text, "\n{mark}{name}, {per}{blank}");
                text.push_str(&write(&grid));
            }
            text.push('\n');
        }
        text
    }

    fn per(&self, slot: &Slot, count: u64) -> f64 {
        count as f64 / self.operations_of(slot) as f64
    }

    fn instructions(&self, slot: &Slot) -> Grid {
        let mut grid = Grid::default();
        grid.column("", "CPU", Align::Right);
        grid.column("", "users'", Align::Right);
        grid.column("", "kernel's", Align::Right);
        for (cpu, counts) in slot.instructions.iter().enumerate() {
            let [user, kernel] = counts.map(|count| figure(self.per(slot, count)));
            grid.row(vec![cpu.to_string(), user, kernel]);
        }
        grid
    }

    fn moves(&self, slot: &Slot) -> Grid {
        let mut grid = Grid::default();
        grid.column("", "kind", Align::Left);
        let used = |distance: &&Distance| {
            let counts = Kind::ALL.iter().map(|kind| slot.moves(*kind, **distance));
            counts.sum::<u64>() > 0
        };
        let distances: Vec<Distance> = Distance::ALL.iter().filter(used).copied().collect();
        for distance in &distances {
            grid.column("", distance_name(*distance), Align::Right);
        }
        grid.column("", "by users' code", Align::Right);
        for kind in Kind::ALL {
            let user = slot.moved[0].iter().filter(|(moved, _)| moved.kind == kind);
            let user: u64 = user.map(|(_, count)| count).sum();
            let mut cells = vec![kind.name().to_string()];
            for distance in &distances {
                cells.push(figure(self.per(slot, slot.moves(kind, *distance))));
            }
            cells.push(figure(self.per(slot, user)));
            grid.row(cells);
        }
        grid
    }

    fn by_function(&self, slot: &Slot) -> Grid {
        let mut grid = Grid::default();
        grid.column("", "function", Align::Left);
        for name in ["moves", "loads", "stores", "beyond the LLC"] {
            grid.column("", name, Align::Right);
        }
        for function in self.functions(slot).iter().take(SHOWN) {
            let all = function.between_cpus();
            if all == 0 {
                break;
            }
            let loads = function.count(|moved| moved.kind.is_load());
            let far = function
                .count(|moved| moved.kind.is_between_cpus() && moved.distance > Distance::Llc);
            let counts = [all, loads, all - loads, far];
            let mut cells = vec![function.name.clone()];
            cells.extend(counts.map(|count| figure(self.per(slot, count))));
            grid.row(cells);
        }
        grid
    }

    fn by_line(&self, slot: &Slot) -> Grid {
        let mut grid = Grid::default();
        grid.column("", "line", Align::Left);
        grid.column("", "moves", Align::Right);
        grid.column("", "last loaded by", Align::Left);
        grid.column("", "last written by", Align::Left);
        let name = |address: u64| match address {
            0 => String::new(),
            address => self.function(address),
        };
        for line in Counts::lines(slot).into_iter().take(SHOWN) {
            grid.row(vec![
                self.line_name(line),
                figure(self.per(slot, line.moves)),
                name(line.reader),
                name(line.writer),
            ]);
        }
        grid
    }

    /// Every figure, for files.
    fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        for slot in &self.counted.slots {
            let empty = |what, name: String, count| Record {
                slot: slot.number,
                what,
                name,
                mode: "",
                kind: "",
                distance: "",
                count,
                per_operation: self.per(slot, count),
            };
            records.push(empty("operations", String::new(), self.operations_of(slot)));
            let modes = ["user", "kernel"];
            for (cpu, counts) in slot.instructions.iter().enumerate() {
                for (mode, count) in modes.into_iter().zip(counts) {
                    let record = empty("instructions", cpu.to_string(), *count);
                    records.push(Record { mode, ..record });
                }
            }
            let with = |record: Record, moved: &Moved| Record {
                kind: moved.kind.name(),
                distance: distance_name(moved.distance),
                ..record
            };
            for (mode, by) in modes.into_iter().zip(&slot.moved) {
                for (moved, count) in by {
                    let record = with(empty("moved", String::new(), *count), moved);
                    records.push(Record { mode, ..record });
                }
            }
            for function in self.functions(slot) {
                for (moved, count) in &function.moved {
                    records.push(with(
                        empty("function", function.name.clone(), *count),
                        moved,
                    ));
                }
            }
            for line in Counts::lines(slot) {
                records.push(empty("line", self.line_name(line), line.moves));
            }
        }
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(operations: Option<u64>) -> Counts {
        let file = "slot 1 rounds 4 accesses 90\ncpu 0 user 40 kernel 400\nmoved 0 0 1 2 4\n\
                    moved 0 1 1 4 40\nmoved 0 1 3 4 20\nmoved 0 1 6 0 8\ncode 401000 1 2 4\n\
                    code ffffffff81000010 1 4 30\ncode ffffffff81000020 1 4 10\n\
                    code ffffffff81000048 3 4 20\ncode ffffffff81000048 6 0 8\n\
                    line 1040 ffffffff81000108 60 ffffffff81000010 ffffffff81000048\n\
                    line 2000 ffff888000002000 4 401000 0\nend 1\n";
        let symbols = "ffffffff81000000 T try_to_wake_up\nffffffff81000040 t ttwu_queue\n\
                       ffffffff81000100 D runqueues\n";
        Counts {
            counted: Counted::parse(file).unwrap(),
            symbols: Symbols::parse(symbols),
            operations,
        }
    }

    #[test]
    fn tables_are_per_operation() {
        insta::assert_snapshot!(counts(None).text());
    }

    #[test]
    fn files_have_every_figure() {
        let counts = counts(Some(2));
        insta::assert_snapshot!(counts.write(Form::Csv).unwrap());
        let json: serde_json::Value =
            serde_json::from_str(&counts.write(Form::Json).unwrap()).unwrap();
        let all = json.as_array().unwrap();
        assert_eq!(all.len(), counts.records().len());
        // The functions moved all lines that were moved, and there were two operations.
        let sum = |what: &str, key: &str| -> f64 {
            let of = all.iter().filter(|record| record["what"] == what);
            of.map(|record| record[key].as_f64().unwrap()).sum()
        };
        assert_eq!(sum("moved", "count"), 72.0);
        assert_eq!(sum("function", "count"), 72.0);
        assert_eq!(sum("function", "per_operation"), 36.0);
        assert!(counts.write(Form::Markdown).unwrap().contains("### slot 1"));
    }

    #[test]
    fn a_files_ending_is_its_form() {
        assert_eq!(Form::of("a/b.csv".as_ref()).unwrap(), Form::Csv);
        assert!(Form::of("b.txt".as_ref()).is_err() && Form::of("b".as_ref()).is_err());
    }

    #[test]
    fn nothing_counted_is_said() {
        let none = Counts {
            counted: Counted::default(),
            symbols: Symbols::default(),
            operations: None,
        };
        assert!(none.text().contains("nothing was counted"));
    }
}

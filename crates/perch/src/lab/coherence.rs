// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch lab run --coherence`: the cache lines that moved between a guest's CPUs. docs/hardware.md
//! tells what is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use perch_lab::coherence::{Counted, Slot, Symbols};
use perch_lab::guest::Setup;
use perch_machine::Distance;
use perch_machine::moves::{LineKind, Moves, distance_name};
use perch_report::{Align, Grid, Origin, figure};
use serde::Serialize;

use super::{RunArguments, Scheduler};
use crate::arguments::{Form, origin};
use crate::output::{Failure, emit};

/// No function of the kernel is longer, in bytes: an address further behind the last symbol is not
/// that symbol's.
const LONGEST: u64 = 1 << 20;

/// The counts of a run in a guest, and what a reader has to know to get them again.
#[derive(Serialize)]
struct Counts<'a> {
    #[serde(flatten)]
    origin: Origin,
    machine: &'a str,
    kernel: &'a str,
    scheduler: String,
    slots: Vec<SlotCounts<'a>>,
}

/// The counts of one stretch between two marks, and its moves by function.
#[derive(Serialize)]
struct SlotCounts<'a> {
    #[serde(flatten)]
    slot: &'a Slot,
    functions: BTreeMap<&'a str, Moves>,
}

/// Prints the counts of a guest.
pub fn show(
    form: Form,
    arguments: &RunArguments,
    setup: &Setup,
    kernel: &str,
    (counted, symbols): (&Counted, &Symbols),
) -> Result<(), Failure> {
    if form == Form::Table {
        return emit(&table(counted));
    }
    let scheduler = match arguments.scheduler {
        Scheduler::Stock => "stock".to_string(),
        Scheduler::Perch => [&["perch".to_string()], &arguments.set[..]].concat().join(" "),
    };
    let slots = counted.slots.iter();
    let counts = Counts {
        origin: origin(),
        machine: &setup.topology.machine().name,
        kernel,
        scheduler,
        slots: slots.map(|slot| SlotCounts { slot, functions: functions(slot, symbols) }).collect(),
    };
    emit(&(serde_json::to_string(&counts).expect("the counts have only text keys") + "\n"))
}

/// Returns the moves by the function of the instruction, users' code and the kernel's alike.
fn functions<'a>(slot: &Slot, symbols: &'a Symbols) -> BTreeMap<&'a str, Moves> {
    let mut functions: BTreeMap<&str, Moves> = BTreeMap::new();
    for (&address, moved) in &slot.code {
        let name = match symbols.find(address) {
            Some((name, offset)) if offset < LONGEST => name,
            _ if address >> 63 == 0 => "(user)",
            // A BPF program that was unloaded before the symbols were read.
            _ => "(no symbol)",
        };
        let sums = functions.entry(name).or_default();
        for (moved, count) in moved {
            *sums.entry(*moved).or_default() += count;
        }
    }
    functions
}

/// Returns each slot's instructions and moves, for each round that the command marked.
fn table(counted: &Counted) -> String {
    if counted.slots.is_empty() {
        return "no stretch between two marks has ended: nothing was counted\n".to_string();
    }
    let mut text = String::new();
    for slot in &counted.slots {
        let each = |count: u64| figure(count as f64 / slot.rounds.max(1) as f64);
        let [user, kernel] = [0, 1].map(|mode| slot.instructions.iter().map(|by| by[mode]).sum());
        let _ = writeln!(
            text,
            "slot {}, {} rounds; instructions: {} of users and {} of the kernel{}",
            slot.number,
            slot.rounds,
            each(user),
            each(kernel),
            if slot.rounds > 1 { " a round" } else { "" }
        );
        let all = slot.moved.iter().flat_map(|moves| moves.keys());
        let distances: BTreeSet<Distance> = all.map(|moved| moved.distance).collect();
        let mut grid = Grid::new(&["lines moved"], &[]);
        for distance in &distances {
            grid.column("", distance_name(*distance), Align::Right);
        }
        for kind in LineKind::ALL {
            let counts = distances.iter().map(|distance| slot.moves(kind, *distance));
            let counts: Vec<u64> = counts.collect();
            if counts.iter().any(|count| *count > 0) {
                let cells = counts.into_iter().map(each);
                grid.row([kind.name().to_string()].into_iter().chain(cells).collect());
            }
        }
        let _ = writeln!(text, "{}", grid.text());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_by_round_and_functions_have_names() {
        // 0x401000, 0xffffffff81000010 and ..20, 0xffffffffa0000000.
        let file = r#"{"number":1,"rounds":4,"accesses":90,"instructions":[[40,400],[0,40]],"spent":[],
            "moved":[[[1,2,4]],[[1,4,40],[6,0,8]]],
            "code":[[4198400,1,2,4],[18446744071578845200,1,4,30],[18446744071578845216,1,4,10],
            [18446744072098938880,6,0,8]]}"#;
        let counted = Counted::parse(file).unwrap();
        let symbols = Symbols::parse("ffffffff81000000 T try_to_wake_up\n");
        let functions = functions(&counted.slots[0], &symbols);
        let json = serde_json::to_string(&functions).unwrap();
        assert_eq!(
            json,
            r#"{"(no symbol)":{"cold, memory":8},"(user)":{"dirty load, cluster":4},"try_to_wake_up":{"dirty load, node":40}}"#
        );
        assert_eq!(
            table(&counted),
            "slot 1, 4 rounds; instructions: 10.00 of users and 110.00 of the kernel a round\n\
             lines moved  memory  cluster   node\n\
             dirty load     0.00    1.000  10.00\n\
             cold          2.000     0.00   0.00\n\n"
        );
    }
}

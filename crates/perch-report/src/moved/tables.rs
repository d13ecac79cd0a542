// SPDX-License-Identifier: GPL-2.0-or-later
//! Tables of the lines that moved, for a terminal.

use std::fmt::Write;

use perch_machine::Distance;

use super::task::by_task;
use super::{
    LineCounts, LineKind, Move, SHOWN, SlotCounts, USES, between_cpus, count, distance_name, time,
};
use crate::figure::figure;
use crate::grid::{Align, Grid};

/// Returns every slot's tables. A table in which nothing was counted is left out.
pub fn sections(counts: &LineCounts) -> String {
    let mut text = String::new();
    if counts.slots.is_empty() {
        return "no stretch between two marks has ended: nothing was counted\n".to_string();
    }
    for slot in &counts.slots {
        let _ = writeln!(
            text,
            "slot {}: {} operations, {} loads and stores",
            slot.slot, slot.operations, slot.accesses
        );
        let per = match slot.operations {
            1 => "in all",
            _ => "an operation",
        };
        for (name, grid) in [
            (format!("instructions, {per}"), instructions(slot)),
            (format!("where time went, ns {per}"), time::table(slot)),
            ("lines used, in all".to_string(), used(slot)),
            (format!("lines moved, {per}"), moves(slot)),
            (format!("by function, {per}"), by_function(slot)),
            (format!("by line, {per}"), by_line(slot)),
            (format!("by task, {per}"), by_task(slot)),
        ] {
            if !grid.rows().is_empty() {
                let _ = writeln!(text, "\n{name}");
                text.push_str(&grid.text());
            }
        }
        text.push('\n');
    }
    text
}

/// Returns the instructions of each CPU that executed any, for each operation.
fn instructions(slot: &SlotCounts) -> Grid {
    let mut grid = Grid::default();
    grid.column("", "CPU", Align::Right);
    grid.column("", "users'", Align::Right);
    grid.column("", "kernel's", Align::Right);
    for (cpu, counts) in slot.instructions.iter().enumerate() {
        if *counts != [0, 0] {
            let mut cells = vec![cpu.to_string()];
            cells.extend(counts.map(|count| figure(slot.per(count))));
            grid.row(cells);
        }
    }
    grid
}

/// Returns the lines of data and of code that each CPU used, in all. Where nobody looked at code there is
/// no column of it.
pub fn used(slot: &SlotCounts) -> Grid {
    let mut grid = Grid::default();
    grid.column("", "CPU", Align::Right);
    let looked = |of: &usize| slot.used.values().any(|counts| counts[*of] > 0);
    let columns: Vec<usize> = (0..USES.len()).filter(looked).collect();
    for &of in &columns {
        grid.column("", USES[of], Align::Right);
    }
    for (cpu, counts) in &slot.used {
        if counts.iter().any(|count| *count > 0) {
            let counts = columns.iter().map(|&of| counts[of].to_string());
            grid.row([cpu.to_string()].into_iter().chain(counts).collect());
        }
    }
    grid
}

/// Returns the moves of each kind over each distance for each operation; where time is modelled, also the
/// moves for which nobody waited.
pub fn moves(slot: &SlotCounts) -> Grid {
    let mut grid = Grid::default();
    grid.column("", "kind", Align::Left);
    let distances = slot.distances();
    for distance in &distances {
        grid.column("", distance_name(*distance), Align::Right);
    }
    grid.column("", "by users' code", Align::Right);
    if slot.is_timed() {
        grid.column("", "aside", Align::Right);
    }
    for kind in LineKind::ALL {
        if slot.count(|moved| moved.kind == kind) == 0 {
            continue;
        }
        let say = |count: u64| figure(slot.per(count));
        let mut cells = vec![kind.name().to_string()];
        for distance in &distances {
            let over = slot.count(|moved| (moved.kind, moved.distance) == (kind, *distance));
            cells.push(say(over));
        }
        let is = |moved: &Move| moved.kind == kind;
        cells.push(say(count(&slot.moved[0], is)));
        if slot.is_timed() {
            let aside = slot.aside.values().map(|moves| count(moves, is));
            cells.push(say(aside.fold(0, u64::saturating_add)));
        }
        grid.row(cells);
    }
    grid
}

/// Returns the functions that moved most lines between CPUs, for each operation.
fn by_function(slot: &SlotCounts) -> Grid {
    let mut grid = Grid::default();
    grid.column("", "function", Align::Left);
    for name in ["moves", "loads", "stores", "beyond the LLC"] {
        grid.column("", name, Align::Right);
    }
    let moving = slot.functions.iter().filter(|(_, moves)| between_cpus(moves) > 0);
    let mut moving: Vec<_> = moving.collect();
    moving.sort_by_key(|(_, moves)| std::cmp::Reverse(between_cpus(moves)));
    for (name, moves) in moving.into_iter().take(SHOWN) {
        let say = |count: u64| figure(slot.per(count));
        let is_load = |load: bool| {
            move |moved: &Move| moved.kind.is_between_cpus() && moved.kind.is_load() == load
        };
        let beyond = |moved: &Move| moved.kind.is_between_cpus() && moved.distance > Distance::Llc;
        grid.row(vec![
            name.clone(),
            say(between_cpus(moves)),
            say(count(moves, is_load(true))),
            say(count(moves, is_load(false))),
            say(count(moves, beyond)),
        ]);
    }
    grid
}

/// Returns a table of the lines that moved most, for each operation.
fn by_line(slot: &SlotCounts) -> Grid {
    let mut grid = Grid::default();
    grid.column("", "line", Align::Left);
    grid.column("", "moves", Align::Right);
    grid.column("", "last loaded by", Align::Left);
    grid.column("", "last written by", Align::Left);
    for line in slot.most_moved().into_iter().take(SHOWN) {
        grid.row(vec![
            line.name.clone(),
            figure(slot.per(line.moves)),
            line.loaded_by.clone(),
            line.written_by.clone(),
        ]);
    }
    grid
}

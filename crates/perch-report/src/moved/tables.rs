// SPDX-License-Identifier: GPL-2.0-or-later
//! Tables of the lines that moved: for a terminal, in Markdown and for the page.

use std::collections::BTreeSet;
use std::fmt::Write;

use perch_machine::Distance;

use super::task::by_task;
use super::{
    Arms, LineCounts, LineKind, Move, Moves, SHOWN, SlotCounts, USES, between_cpus, count,
    distance_name, time,
};
use crate::figure::figure;
use crate::grid::{Align, Grid};

/// The columns of a table of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Functions {
    /// All moves, loads, stores, and moves beyond the LLC.
    Brief,
    #[cfg_attr(not(feature = "pages"), expect(dead_code, reason = "for pages"))]
    /// All moves, and the share of each distance; of one arm also loads and stores, of several the
    /// difference of each from the first.
    Shares,
}

/// Returns every slot's tables, with `mark` before each heading, written by `write`. A table in which
/// nothing was counted is left out.
pub fn sections(counts: &LineCounts, mark: &str, write: fn(&Grid) -> String) -> String {
    let blank = if mark.is_empty() { "" } else { "\n" };
    let mut text = String::new();
    if counts.slots.is_empty() {
        return "no stretch between two marks has ended: nothing was counted\n".to_string();
    }
    for slot in &counts.slots {
        let _ = writeln!(
            text,
            "{mark}slot {}: {} operations, {} loads and stores{blank}",
            slot.slot, slot.operations, slot.accesses
        );
        let per = per(slot.operations);
        let arms = [(String::new(), slot)];
        let functions = by_function(&arms, &most_moving(&arms), Functions::Brief);
        for (name, grid) in [
            (format!("instructions, {per}"), instructions(&arms)),
            (format!("where time went, ns {per}"), time::table(&arms)),
            ("lines used, in all".to_string(), used(&arms)),
            (format!("lines moved, {per}"), moves(&arms)),
            (format!("by function, {per}"), functions),
            (format!("by line, {per}"), by_line(slot)),
            (format!("by task, {per}"), by_task(slot)),
        ] {
            if !grid.rows().is_empty() {
                let _ = writeln!(text, "\n{mark}{name}{blank}");
                text.push_str(&write(&grid));
            }
        }
        text.push('\n');
    }
    text
}

/// Returns the words for a figure of a slot with so many operations.
pub fn per(operations: u64) -> &'static str {
    match operations {
        1 => "in all",
        _ => "an operation",
    }
}

/// Returns the distances over which lines moved in any arm, nearest first.
pub fn distances(arms: &Arms) -> Vec<Distance> {
    let used = arms.iter().flat_map(|(_, slot)| slot.distances());
    used.collect::<BTreeSet<Distance>>().into_iter().collect()
}

/// Returns the instructions of each CPU that executed any, for each operation.
pub fn instructions(arms: &Arms) -> Grid {
    let mut grid = Grid::default();
    grid.column("", "CPU", Align::Right);
    for (arm, _) in arms {
        grid.column(arm, "users'", Align::Right);
        grid.column(arm, "kernel's", Align::Right);
    }
    let cpus = arms.iter().map(|(_, slot)| slot.instructions.len()).max();
    for cpu in 0..cpus.unwrap_or(0) {
        let mut counts = arms
            .iter()
            .filter_map(|(_, slot)| slot.instructions.get(cpu));
        if counts.all(|counts| *counts == [0, 0]) {
            continue;
        }
        let mut cells = vec![cpu.to_string()];
        for (_, slot) in arms {
            match slot.instructions.get(cpu) {
                Some(counts) => cells.extend(counts.map(|count| figure(slot.per(count)))),
                None => cells.extend([const { String::new() }; 2]),
            }
        }
        grid.row(cells);
    }
    grid
}

/// Returns the lines of data and of code that each CPU used, in all. Arms that nobody looked at code
/// in have no column of code.
pub fn used(arms: &Arms) -> Grid {
    let mut grid = Grid::default();
    grid.column("", "CPU", Align::Right);
    let mut columns: Vec<(usize, usize)> = Vec::new();
    for (arm, (name, slot)) in arms.iter().enumerate() {
        for (of, word) in USES.into_iter().enumerate() {
            if slot.used.values().any(|counts| counts[of] > 0) {
                grid.column(name, word, Align::Right);
                columns.push((arm, of));
            }
        }
    }
    let cpus: BTreeSet<u32> = arms
        .iter()
        .flat_map(|(_, slot)| slot.used.keys().copied())
        .collect();
    for cpu in cpus {
        let count = |(arm, of): &(usize, usize)| -> u64 {
            let counts = arms[*arm].1.used.get(&cpu);
            counts.map_or(0, |counts| counts[*of])
        };
        let counts: Vec<u64> = columns.iter().map(count).collect();
        if counts.iter().any(|count| *count > 0) {
            let counts = counts.iter().map(u64::to_string);
            grid.row([cpu.to_string()].into_iter().chain(counts).collect());
        }
    }
    grid
}

/// Returns the kinds in which lines moved in any arm, in the order of tables.
pub fn kinds(arms: &Arms) -> Vec<LineKind> {
    let moved = |kind: &LineKind| {
        let of = |slot: &SlotCounts| slot.count(|moved| moved.kind == *kind);
        arms.iter().any(|(_, slot)| of(slot) > 0)
    };
    LineKind::ALL.into_iter().filter(moved).collect()
}

/// Returns the moves of each kind over each distance for each operation; of arms whose time is
/// modelled, also the moves for which nobody waited.
pub fn moves(arms: &Arms) -> Grid {
    let mut grid = Grid::default();
    grid.column("", "kind", Align::Left);
    let distances = distances(arms);
    for (arm, slot) in arms {
        for distance in &distances {
            grid.column(arm, distance_name(*distance), Align::Right);
        }
        grid.column(arm, "by users' code", Align::Right);
        if slot.is_timed() {
            grid.column(arm, "aside", Align::Right);
        }
    }
    for kind in kinds(arms) {
        let mut cells = vec![kind.name().to_string()];
        for (_, slot) in arms {
            let say = |count: u64| figure(slot.per(count));
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
        }
        grid.row(cells);
    }
    grid
}

/// Returns the names of all functions that moved lines between CPUs, with the greatest of `of`
/// first and equals by name.
fn functions_by<'a>(arms: &'a Arms, of: impl Fn(&str) -> f64) -> Vec<&'a str> {
    let all = arms.iter().flat_map(|(_, slot)| &slot.functions);
    let moving = all.filter(|(_, moves)| between_cpus(moves) > 0);
    let names: BTreeSet<&str> = moving.map(|(name, _)| name.as_str()).collect();
    let mut found: Vec<(&str, f64)> = names.into_iter().map(|name| (name, of(name))).collect();
    found.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    found.truncate(SHOWN);
    found.into_iter().map(|(name, _)| name).collect()
}

/// Returns the functions that moved most lines between CPUs in any arm, for each operation.
pub fn most_moving<'a>(arms: &'a Arms) -> Vec<&'a str> {
    functions_by(arms, |name| {
        let figures = arms.iter().map(|(_, slot)| slot.function(name));
        figures.fold(0.0, f64::max)
    })
}

#[cfg_attr(not(feature = "pages"), expect(dead_code, reason = "for pages"))]
/// Returns the functions for which any arm differs most from the first.
pub fn most_different<'a>(arms: &'a Arms) -> Vec<&'a str> {
    let Some(((_, first), others)) = arms.split_first() else {
        return Vec::new();
    };
    let differences = |name: &str| {
        let base = first.function(name);
        let others = others.iter();
        let differences = others.map(|(_, slot)| (slot.function(name) - base).abs());
        differences.fold(0.0, f64::max)
    };
    let found = functions_by(arms, differences);
    let differs = found.into_iter().filter(|name| differences(name) > 0.0);
    differs.collect()
}

/// Returns a table of the functions of `names`, for each operation.
pub fn by_function(arms: &Arms, names: &[&str], columns: Functions) -> Grid {
    let mut grid = Grid::default();
    grid.column("", "function", Align::Left);
    let brief = columns == Functions::Brief;
    let distances: Vec<Distance> = match columns {
        Functions::Brief => Vec::new(),
        Functions::Shares => between(arms),
    };
    for (at, (arm, _)) in arms.iter().enumerate() {
        grid.column(arm, "moves", Align::Right);
        if at > 0 {
            grid.column(arm, "difference", Align::Right);
        }
        if brief || arms.len() == 1 {
            grid.column(arm, "loads", Align::Right);
            grid.column(arm, "stores", Align::Right);
        }
        if brief {
            grid.column(arm, "beyond the LLC", Align::Right);
        }
        for distance in &distances {
            let name = format!("{}, %", distance_name(*distance));
            grid.column(arm, &name, Align::Right);
        }
    }
    let none = Moves::new();
    for name in names {
        let mut cells = vec![name.to_string()];
        for (at, (_, slot)) in arms.iter().enumerate() {
            let moves = slot.functions.get(*name).unwrap_or(&none);
            let say = |count: u64| figure(slot.per(count));
            let between_cpus = between_cpus(moves);
            let is_load = |load: bool| {
                move |moved: &Move| moved.kind.is_between_cpus() && moved.kind.is_load() == load
            };
            cells.push(say(between_cpus));
            if at > 0 {
                cells.push(signed(slot.function(name) - arms[0].1.function(name)));
            }
            if brief || arms.len() == 1 {
                cells.extend([true, false].map(|load| say(count(moves, is_load(load)))));
            }
            if brief {
                cells.push(say(count(moves, |moved| {
                    moved.kind.is_between_cpus() && moved.distance > Distance::Llc
                })));
            }
            for distance in &distances {
                cells.push(share(over(moves, *distance), between_cpus));
            }
        }
        grid.row(cells);
    }
    grid
}

/// Returns a function's moves between CPUs over a distance.
pub fn over(moves: &Moves, distance: Distance) -> u64 {
    count(moves, |moved| {
        moved.kind.is_between_cpus() && moved.distance == distance
    })
}

/// Returns the distances over which functions of any arm moved lines between CPUs, nearest first.
pub fn between(arms: &Arms) -> Vec<Distance> {
    let moved = |distance: &Distance| {
        let mut moves = arms.iter().flat_map(|(_, slot)| slot.functions.values());
        moves.any(|moves| over(moves, *distance) > 0)
    };
    Distance::ALL.iter().filter(|d| moved(d)).copied().collect()
}

/// Returns a difference with its sign.
fn signed(difference: f64) -> String {
    let text = figure(difference);
    if text.starts_with('-') || text.bytes().all(|c| matches!(c, b'0' | b'.')) {
        text
    } else {
        format!("+{text}")
    }
}

/// Returns a share in percent; an empty text where there is no whole.
fn share(part: u64, whole: u64) -> String {
    match whole {
        0 => String::new(),
        whole => format!("{:.1}", 100.0 * part as f64 / whole as f64),
    }
}

/// Returns a table of the lines that moved most, for each operation.
pub fn by_line(slot: &SlotCounts) -> Grid {
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

// SPDX-License-Identifier: GPL-2.0-or-later
//! Counts of the cache lines that moved between the CPUs of a guest, and their tables and file.
//! docs/hardware.md tells what is counted.

mod file;
mod tables;
mod task;
mod time;

use std::collections::{BTreeMap, BTreeSet};

use perch_machine::Distance;
pub use perch_machine::moves::{LineKind, Move, Moves};

pub use task::TaskCounts;

/// The words in files for users' code and the kernel's, in the order of all pairs here.
const MODES: [&str; 2] = ["user", "kernel"];

/// The words in files for lines of data and of code, in the order of all pairs here.
const USES: [&str; 2] = ["data", "code"];

/// The key by which a reader recognises a JSON file of counts, and its value.
const HEAD: (&str, &str) = ("counts", "cache lines");

/// Functions, lines and tasks that a table shows; a file has them all.
const SHOWN: usize = 20;

/// The version of the JSON that this perch writes.
const VERSION: u64 = 1;

/// A thing that takes a CPU's modelled time. A halted CPU spends none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The CPU's instructions.
    Instructions,
    /// The part by which instructions take longer because a sibling runs on the core.
    Smt,
    /// Lines that come in this way over this distance: the part that overlap leaves.
    Line(Move),
    /// Lines that other CPUs have first.
    Queue,
    /// The store buffer: it is full, or a locked instruction waits for it.
    Stores,
    /// The way out of idle states.
    Exit,
}

impl Cause {
    /// Returns the cause's name in files; tables call lines by their distance.
    const fn name(self) -> &'static str {
        match self {
            Cause::Instructions => "instructions",
            Cause::Smt => "SMT",
            Cause::Line(moved) => moved.kind.name(),
            Cause::Queue => "queue",
            Cause::Stores => "store buffer",
            Cause::Exit => "idle exit",
        }
    }
}

/// A line that moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineMoves {
    /// The kernel's variable and the offset in it, or the line's address.
    pub name: String,
    /// How often the line moved between CPUs.
    pub moves: u64,
    /// The function that loaded the line last; empty if none did.
    pub loaded_by: String,
    /// The function that wrote to the line last; empty if none did.
    pub written_by: String,
}

/// The counts of one stretch between two marks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotCounts {
    /// The number that the marks had. Several stretches may have the same.
    pub slot: u8,
    /// The operations by which tables divide, at least 1.
    pub operations: u64,
    /// Loads and stores.
    pub accesses: u64,
    /// By CPU, instructions of users' code and of the kernel's.
    pub instructions: Vec<[u64; 2]>,
    /// By CPU that used any, lines of data and of code; of code none where nobody looked at it.
    pub used: BTreeMap<u32, [u64; 2]>,
    /// By CPU that spent any, its modelled time in picoseconds; empty where time is not modelled.
    pub time_ps: BTreeMap<u32, BTreeMap<Cause, u64>>,
    /// By CPU, lines that moved to it after it had woken another one and before it halted; only
    /// where time is modelled. While the interrupt is on its way, nobody waits for them.
    pub aside: BTreeMap<u32, Moves>,
    /// Moves by users' code and by the kernel's.
    pub moved: [Moves; 2],
    /// Moves by function, users' code and the kernel's alike.
    pub functions: BTreeMap<String, Moves>,
    /// The lines that moved, those that moved most first.
    pub lines: Vec<LineMoves>,
    /// The tasks that executed anything; none where time was modelled.
    pub tasks: Vec<TaskCounts>,
}

/// The counts of a run in a guest, and what a reader has to know to get them again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// The version of the perch that counted.
    pub perch: String,
    /// The command line of perch that ran the guest.
    pub command: String,
    /// The machine whose shape the guest had.
    pub machine: String,
    /// The release of the guest's kernel.
    pub kernel: String,
    /// The guest's scheduler, with its settings.
    pub scheduler: String,
    /// The guest's CPUs.
    pub cpus: u32,
    /// The stretches, in the order of their ends.
    pub slots: Vec<SlotCounts>,
}

/// Returns a distance's name in tables and files.
const fn distance_name(distance: Distance) -> &'static str {
    match distance {
        Distance::Cpu => "memory",
        distance => distance.name(),
    }
}

/// Returns the sum of the moves that `is` picks. The sum stops at the largest number.
fn count(moves: &Moves, is: impl Fn(&Move) -> bool) -> u64 {
    let picked = moves.iter().filter(|(moved, _)| is(moved));
    picked.fold(0, |sum, (_, count)| sum.saturating_add(*count))
}

/// Returns how many lines moved from CPU to CPU.
fn between_cpus(moves: &Moves) -> u64 {
    count(moves, |moved| moved.kind.is_between_cpus())
}

impl SlotCounts {
    /// Returns whether the guest's time was modelled.
    fn is_timed(&self) -> bool {
        !self.time_ps.is_empty()
    }

    /// Returns `count` for each operation.
    fn per(&self, count: u64) -> f64 {
        count as f64 / self.operations.max(1) as f64
    }

    /// Returns the moves of users' and the kernel's code that `is` picks.
    fn count(&self, is: impl Fn(&Move) -> bool) -> u64 {
        let [user, kernel] = self.moved.each_ref().map(|moves| count(moves, &is));
        user.saturating_add(kernel)
    }

    /// Returns the distances over which any line moved, nearest first.
    fn distances(&self) -> BTreeSet<Distance> {
        let moved = self.moved.iter().flatten();
        let moved = moved.filter(|(_, count)| **count > 0);
        moved.map(|(moved, _)| moved.distance).collect()
    }

    /// Returns the lines, those that moved most first.
    fn most_moved(&self) -> Vec<&LineMoves> {
        let mut lines: Vec<&LineMoves> = self.lines.iter().collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.moves));
        lines
    }
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: GPL-2.0-or-later
//! The tasks of a guest: their figures by name, and the table.

use super::{Moves, SHOWN, SlotCounts, between_cpus};
use crate::figure::figure;
use crate::grid::{Align, Grid};

/// A task's counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskCounts {
    /// Its number in the order of the counts, with the CPUs that it ran on.
    pub name: String,
    /// How often a CPU switched to it. A run goes from there to the switch away from it.
    pub runs: u64,
    /// Instructions of users' code and of the kernel's.
    pub instructions: [u64; 2],
    /// Lines of data that it used in each run, added up over the runs.
    pub data: u64,
    /// Those of them that no other task had used since this one's last run: what a CPU's caches lose
    /// when others run there, and what a task leaves behind when it goes to another CPU.
    pub own: u64,
    /// Lines of code that it used in each run, added up over the runs.
    pub code: u64,
    /// The lines that it moved.
    pub moved: Moves,
}

/// A figure of a task that is neither of a mode nor of a way in which lines move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Figure {
    Runs,
    Data,
    Own,
    Code,
}

impl Figure {
    /// The figures with their names in files.
    pub const ALL: [(&str, Figure); 4] = [
        ("runs", Figure::Runs),
        ("data", Figure::Data),
        ("own", Figure::Own),
        ("code", Figure::Code),
    ];
}

impl TaskCounts {
    pub(super) fn figure(&self, figure: Figure) -> u64 {
        match figure {
            Figure::Runs => self.runs,
            Figure::Data => self.data,
            Figure::Own => self.own,
            Figure::Code => self.code,
        }
    }

    fn executed(&self) -> u64 {
        self.instructions[0].saturating_add(self.instructions[1])
    }
}

/// Returns a table of the tasks that executed most: runs, instructions and moves for each operation,
/// and the lines that a task used in a run.
pub(super) fn by_task(slot: &SlotCounts) -> Grid {
    let mut grid = Grid::default();
    grid.column("", "task", Align::Left);
    for name in ["runs", "users'", "kernel's", "moves"] {
        grid.column("", name, Align::Right);
    }
    for name in ["data", "its own", "code"] {
        grid.column("lines a run", name, Align::Right);
    }
    let mut tasks: Vec<&TaskCounts> = slot.tasks.iter().collect();
    tasks.sort_by_key(|task| std::cmp::Reverse(task.executed()));
    for task in tasks.into_iter().take(SHOWN) {
        let [user, kernel] = task.instructions;
        let counts = [task.runs, user, kernel, between_cpus(&task.moved)];
        let mut cells = vec![task.name.clone()];
        cells.extend(counts.map(|count| figure(slot.per(count))));
        // A task that ran from mark to mark had one run that no switch began.
        let runs = task.runs.max(1) as f64;
        let lines = [task.data, task.own, task.code];
        cells.extend(lines.map(|lines| figure(lines as f64 / runs)));
        grid.row(cells);
    }
    grid
}

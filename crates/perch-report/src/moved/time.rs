// SPDX-License-Identifier: GPL-2.0-or-later
//! The modelled time of a guest's CPUs, by what it went to.

use std::collections::BTreeSet;

use perch_machine::Distance;

use super::{Arms, Cause, LineKind, Move, SlotCounts, distance_name};
use crate::figure::figure;
use crate::grid::{Align, Grid};

/// A column of the table, and a part of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    Instructions,
    Smt,
    /// Lines of all kinds over a distance, or from memory.
    Lines(Distance),
    Queue,
    Stores,
    Exit,
}

impl Column {
    /// Returns the column that has a cause. All memory has one, whichever node it belongs to.
    const fn of(cause: Cause) -> Column {
        match cause {
            Cause::Instructions => Column::Instructions,
            Cause::Smt => Column::Smt,
            Cause::Line(Move {
                kind: LineKind::Cold,
                ..
            }) => Column::Lines(Distance::Cpu),
            Cause::Line(moved) => Column::Lines(moved.distance),
            Cause::Queue => Column::Queue,
            Cause::Stores => Column::Stores,
            Cause::Exit => Column::Exit,
        }
    }

    /// Returns the column's heading.
    pub const fn name(self) -> &'static str {
        match self {
            Column::Instructions => Cause::Instructions.name(),
            Column::Smt => Cause::Smt.name(),
            Column::Lines(distance) => distance_name(distance),
            Column::Queue => Cause::Queue.name(),
            Column::Stores => Cause::Stores.name(),
            Column::Exit => Cause::Exit.name(),
        }
    }
}

/// Returns the columns in which any CPU of any arm spent time.
pub fn columns(arms: &Arms) -> Vec<Column> {
    let spent = arms.iter().flat_map(|(_, slot)| slot.time_ps.values());
    let spent = spent.flatten().filter(|(_, ps)| **ps > 0);
    let columns: BTreeSet<Column> = spent.map(|(cause, _)| Column::of(*cause)).collect();
    columns.into_iter().collect()
}

/// Returns the CPUs that spent time in any arm, in their order.
pub fn cpus(arms: &Arms) -> Vec<u32> {
    let spent = arms.iter().flat_map(|(_, slot)| &slot.time_ps);
    let spent = spent.filter(|(_, causes)| causes.values().any(|ps| *ps > 0));
    let cpus: BTreeSet<u32> = spent.map(|(cpu, _)| *cpu).collect();
    cpus.into_iter().collect()
}

impl SlotCounts {
    /// Returns the CPU's time in columns that `is` picks, in nanoseconds for each operation.
    pub(crate) fn time_ns(&self, cpu: u32, is: impl Fn(Column) -> bool) -> f64 {
        let causes = self.time_ps.get(&cpu).into_iter().flatten();
        let picked = causes.filter(|(cause, _)| is(Column::of(**cause)));
        self.per(picked.fold(0, |sum, (_, ps)| sum.saturating_add(*ps))) / 1000.0
    }
}

/// Returns a table of where each CPU's time went, in nanoseconds for each operation. A CPU has a row
/// for each arm in which it spent any: columns of several arms would be too many for a page.
pub fn table(arms: &Arms) -> Grid {
    let mut grid = Grid::default();
    grid.column("", "CPU", Align::Right);
    let is_alone = arms.iter().all(|(name, _)| name.is_empty());
    if !is_alone {
        grid.column("", "", Align::Left);
    }
    let columns = columns(arms);
    for column in &columns {
        grid.column("", column.name(), Align::Right);
    }
    grid.column("", "sum", Align::Right);
    for cpu in cpus(arms) {
        for (arm, slot) in arms {
            let sum = slot.time_ns(cpu, |_| true);
            if sum == 0.0 {
                continue;
            }
            let of = |column: &Column| figure(slot.time_ns(cpu, |other| other == *column));
            let mut cells = vec![cpu.to_string()];
            cells.extend((!is_alone).then(|| arm.clone()));
            cells.extend(columns.iter().map(of));
            cells.push(figure(sum));
            grid.row(cells);
        }
    }
    grid
}

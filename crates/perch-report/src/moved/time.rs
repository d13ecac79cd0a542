// SPDX-License-Identifier: GPL-2.0-or-later
//! The modelled time of a guest's CPUs, by what it went to.

use std::collections::BTreeSet;

use perch_machine::Distance;

use super::{Cause, LineKind, Move, SlotCounts, distance_name};
use crate::figure::figure;
use crate::grid::{Align, Grid};

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
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
            Cause::Line(Move { kind: LineKind::Cold, .. }) => Column::Lines(Distance::Cpu),
            Cause::Line(moved) => Column::Lines(moved.distance),
            Cause::Queue => Column::Queue,
            Cause::Stores => Column::Stores,
            Cause::Exit => Column::Exit,
        }
    }

    /// Returns the column's heading.
    const fn name(self) -> &'static str {
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

/// Returns the columns in which any CPU spent time.
fn columns(slot: &SlotCounts) -> Vec<Column> {
    let spent = slot.time_ps.values().flatten().filter(|(_, ps)| **ps > 0);
    let columns: BTreeSet<Column> = spent.map(|(cause, _)| Column::of(*cause)).collect();
    columns.into_iter().collect()
}

/// Returns the CPU's time in columns that `is` picks, in nanoseconds for each operation.
fn time_ns(slot: &SlotCounts, cpu: u32, is: impl Fn(Column) -> bool) -> f64 {
    let causes = slot.time_ps.get(&cpu).into_iter().flatten();
    let picked = causes.filter(|(cause, _)| is(Column::of(**cause)));
    slot.per(picked.fold(0, |sum, (_, ps)| sum.saturating_add(*ps))) / 1000.0
}

/// Returns a table of where each CPU's time went, in nanoseconds for each operation.
pub fn table(slot: &SlotCounts) -> Grid {
    let mut grid = Grid::default();
    grid.column("", "CPU", Align::Right);
    let columns = columns(slot);
    for column in &columns {
        grid.column("", column.name(), Align::Right);
    }
    grid.column("", "sum", Align::Right);
    for &cpu in slot.time_ps.keys() {
        let sum = time_ns(slot, cpu, |_| true);
        if sum == 0.0 {
            continue;
        }
        let of = |column: &Column| figure(time_ns(slot, cpu, |other| other == *column));
        let mut cells = vec![cpu.to_string()];
        cells.extend(columns.iter().map(of));
        cells.push(figure(sum));
        grid.row(cells);
    }
    grid
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The simulations of a run, in the order in which workers take them: table by table, and in each
//! the longest first.

use std::cmp::Reverse;
use std::ops::Range;

use crate::model::{Arm, Effort, Load};
use crate::seed::seed;

/// One simulation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial<'a> {
    pub load: &'a Load,
    pub arm: &'a Arm,
    pub effort: Effort,
    pub seed: u64,
    pub repetition: u32,
}

/// All simulations, of which no list is kept: load by load, in each arm by arm, in each by
/// repetition.
pub(super) struct Plan<'a> {
    loads: &'a [(&'a Load, Effort)],
    arms: &'a [&'a Arm],
    base: u64,
    /// The loads in the order in which they run, each with the number of its first simulation.
    order: Vec<(usize, usize)>,
    /// The tables' loads, each with the number of the simulation after its last.
    tables: Vec<(usize, Range<usize>)>,
    total: usize,
}

impl<'a> Plan<'a> {
    pub fn new(loads: &'a [(&'a Load, Effort)], arms: &'a [&'a Arm], base: u64) -> Plan<'a> {
        let mut total = 0;
        let (mut order, mut tables) = (Vec::new(), Vec::new());
        let mut begin = 0;
        let same = |(a, _): &(&Load, _), (b, _): &(&Load, _)| {
            (&a.benchmark, &a.place) == (&b.benchmark, &b.place)
        };
        for table in loads.chunk_by(same) {
            let end = begin + table.len();
            for load in longest_first(table).into_iter().map(|load| begin + load) {
                order.push((total, load));
                total += arms.len() * loads[load].1.repetitions as usize;
            }
            tables.push((total, begin..end));
            begin = end;
        }
        Plan {
            loads,
            arms,
            base,
            order,
            tables,
            total,
        }
    }

    /// Returns the number of simulations.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Returns the place of simulation `index`: its load and its arm, as indices.
    pub fn place(&self, index: usize) -> (usize, usize) {
        let (load, within) = self.within(index);
        (load, within / self.loads[load].1.repetitions as usize)
    }

    /// Returns the loads of the table whose last simulation is `index`, if there is one.
    pub fn table_that_ends(&self, index: usize) -> Option<Range<usize>> {
        let ends = |(end, _): &&(usize, _)| *end == index + 1;
        let table = self.tables.iter().find(ends);
        table.map(|(_, loads)| loads.clone())
    }

    /// Returns simulation `index`.
    pub fn trial(&self, index: usize) -> Trial<'a> {
        let (at, within) = self.within(index);
        let (load, effort) = self.loads[at];
        let repetitions = effort.repetitions as usize;
        let repetition = (within % repetitions) as u32;
        Trial {
            load,
            arm: self.arms[within / repetitions],
            effort,
            seed: seed(self.base, &load.parts(), repetition),
            repetition,
        }
    }

    /// Returns the load of simulation `index`, and the simulation's number within the load.
    fn within(&self, index: usize) -> (usize, usize) {
        let after = self.order.partition_point(|(first, _)| *first <= index);
        let (first, load) = self.order[after - 1];
        (load, index - first)
    }
}

/// Returns the loads of a table in the order in which they run. Tables list their rows from the
/// lightest to the heaviest, so a load's place in its table times its simulated time stands for its
/// cost.
fn longest_first(table: &[(&Load, Effort)]) -> Vec<usize> {
    let cost = |at: usize| (at as u64 + 1) * (table[at].1.warmup_ns + table[at].1.measure_ns);
    let mut order: Vec<usize> = (0..table.len()).collect();
    order.sort_by_key(|at| Reverse(cost(*at)));
    order
}

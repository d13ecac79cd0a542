// SPDX-License-Identifier: GPL-2.0-or-later
//! The simulations of a run, in the order in which workers take them.

use std::cmp::Reverse;

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
    total: usize,
}

impl<'a> Plan<'a> {
    pub fn new(loads: &'a [(&'a Load, Effort)], arms: &'a [&'a Arm], base: u64) -> Plan<'a> {
        let mut total = 0;
        let first = |load: usize| {
            let first = total;
            total += arms.len() * loads[load].1.repetitions as usize;
            (first, load)
        };
        let order = longest_first(loads).into_iter().map(first).collect();
        Plan {
            loads,
            arms,
            base,
            order,
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

/// Returns the loads in the order in which they run. Tables list their rows from the lightest to
/// the heaviest, so a load's place in its table times its simulated time stands for its cost.
fn longest_first(loads: &[(&Load, Effort)]) -> Vec<usize> {
    let mut rank = 0;
    let mut table = None;
    let cost = |(load, effort): &(&'_ Load, Effort)| {
        let this = Some((load.benchmark.clone(), load.place.clone()));
        rank = if this == table { rank + 1 } else { 1 };
        table = this;
        rank * (effort.warmup_ns + effort.measure_ns)
    };
    let costs: Vec<u64> = loads.iter().map(cost).collect();
    let mut order: Vec<usize> = (0..loads.len()).collect();
    order.sort_by_key(|load| Reverse(costs[*load]));
    order
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The simulations of a table, in the order in which workers take them: the longest first.

use std::cmp::Reverse;
use std::ops::Range;

use crate::arm::Arm;
use crate::model::{Effort, Load};
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

/// Repetitions of one load, in every arm.
#[derive(Clone, Debug)]
pub(super) struct Batch<'a> {
    /// The load's place among all that are simulated.
    pub at: usize,
    pub load: &'a Load,
    pub effort: Effort,
    /// The numbers of the repetitions.
    pub repetitions: Range<u32>,
}

impl Batch<'_> {
    fn simulations(&self, arms: usize) -> usize {
        self.repetitions.len() * arms
    }
}

/// The simulations of batches, of which no list is kept: batch by batch, in each arm by arm, in each
/// by repetition.
pub(super) struct Plan<'a> {
    /// The batches in the order in which they run, each with the number of its first simulation.
    batches: Vec<(usize, Batch<'a>)>,
    arms: &'a [&'a Arm],
    base: u64,
    total: usize,
}

impl<'a> Plan<'a> {
    /// Plans `batches`, which are of one table.
    pub fn new(mut batches: Vec<Batch<'a>>, arms: &'a [&'a Arm], base: u64) -> Plan<'a> {
        // Tables list their rows from the lightest to the heaviest, so a load's place in its table
        // times its simulated time stands for its cost. The longest begin first.
        let Some(first) = batches.iter().map(|batch| batch.at).min() else {
            return Plan {
                batches: Vec::new(),
                arms,
                base,
                total: 0,
            };
        };
        let cost = |batch: &Batch| {
            let Effort {
                warmup_ns,
                measure_ns,
                ..
            } = batch.effort;
            ((batch.at - first) as u64 + 1) * (warmup_ns + measure_ns)
        };
        batches.sort_by_key(|batch| Reverse(cost(batch)));
        let mut total = 0;
        let number = |batch: Batch<'a>| {
            let first = total;
            total += batch.simulations(arms.len());
            (first, batch)
        };
        let batches = batches.into_iter().map(number).collect();
        Plan {
            batches,
            arms,
            base,
            total,
        }
    }

    /// Returns the number of simulations.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Returns the place of simulation `index`: its load's, and its arm as an index.
    pub fn place(&self, index: usize) -> (usize, usize) {
        let (batch, within) = self.within(index);
        (batch.at, within / batch.repetitions.len())
    }

    /// Returns simulation `index`.
    pub fn trial(&self, index: usize) -> Trial<'a> {
        let (batch, within) = self.within(index);
        let each = batch.repetitions.len();
        let repetition = batch.repetitions.start + (within % each) as u32;
        Trial {
            load: batch.load,
            arm: self.arms[within / each],
            effort: batch.effort,
            seed: seed(self.base, &batch.load.parts(), repetition),
            repetition,
        }
    }

    /// Returns the batch of simulation `index`, and the simulation's number within it.
    fn within(&self, index: usize) -> (&Batch<'a>, usize) {
        let after = self.batches.partition_point(|(first, _)| *first <= index);
        let (first, batch) = &self.batches[after - 1];
        (batch, index - first)
    }
}

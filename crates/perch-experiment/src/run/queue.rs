// SPDX-License-Identifier: GPL-2.0-or-later
//! The simulations of a run as one queue, in which every load is a list: no worker waits for the last
//! simulation of a table, or of a load, while another load has any.

use std::cmp::Reverse;
use std::ops::Range;

use super::RunOptions;
use super::gathered::Gathered;
use super::kept::Found;
use super::plan::{Batch, Trial};
use crate::error::ExperimentError;
use crate::model::{Effort, Load};
use crate::pool::{Lists, Progress};

/// The loads of a run.
pub(super) struct Queue<'a, 'b> {
    gathered: &'b mut Gathered<'a>,
    options: &'b RunOptions,
    /// The loads, as places in [`Gathered::chosen`], in the order in which workers take them, each
    /// with its repetitions that are simulated now.
    lists: Vec<(usize, Batch<'a>)>,
    progress: Progress<'b>,
}

impl<'a, 'b> Queue<'a, 'b> {
    pub fn new(
        gathered: &'b mut Gathered<'a>,
        options: &'b RunOptions,
        progress: Progress<'b>,
    ) -> Queue<'a, 'b> {
        let tables = tables(gathered.chosen);
        let order = tables.iter().flat_map(|table| longest_first(gathered.chosen, table));
        let lists = order.map(|load| (load, gathered.next(load))).collect();
        Queue { gathered, options, lists, progress }
    }
}

impl<'a> Lists for Queue<'a, '_> {
    type Task = Trial<'a>;
    type Found = Found;
    type Error = ExperimentError;

    fn lengths(&self) -> Vec<usize> {
        let arms = self.gathered.arms.len();
        let lists = self.lists.iter();
        lists.map(|(_, batch)| batch.simulations(arms)).collect()
    }

    fn task(&self, list: usize, index: usize) -> Trial<'a> {
        let (_, batch) = &self.lists[list];
        batch.trial(index, self.gathered.arms, self.gathered.base)
    }

    fn keep(&mut self, list: usize, index: usize, found: Found) -> Result<(), ExperimentError> {
        let (load, batch) = &self.lists[list];
        self.gathered.add(*load, batch.arm(index), found);
        Ok(())
    }

    /// Simulates a load anew where it is not steady, and goes on with it where a cell is undecided.
    fn further(&mut self, list: usize) -> usize {
        let at = self.lists[list].0;
        let (load, effort) = self.gathered.chosen[at];
        let goes_on = self.gathered.lengthen(at, self.options.doublings())
            || (self.gathered.repetitions(at) < self.options.most(load, effort)
                && self.gathered.is_open(at));
        if !goes_on {
            return 0;
        }
        let batch = self.gathered.next(at);
        let simulations = batch.simulations(self.gathered.arms.len());
        self.lists[list].1 = batch;
        simulations
    }

    fn advance(&mut self, done: usize, known: usize) -> Result<(), ExperimentError> {
        (self.progress)(done, known);
        Ok(())
    }
}

/// Returns the places of each table's loads among `chosen`.
fn tables(chosen: &[(&Load, Effort)]) -> Vec<Range<usize>> {
    let same = |(a, _): &(&Load, _), (b, _): &(&Load, _)| {
        (&a.benchmark, &a.place) == (&b.benchmark, &b.place)
    };
    let mut begin = 0;
    let range = |table: &[_]| {
        let first = begin;
        begin += table.len();
        first..begin
    };
    chosen.chunk_by(same).map(range).collect()
}

/// Returns the loads of a table, the longest first. Tables list their rows from the lightest to the
/// heaviest, so a load's place in its table times its simulated time stands for its cost.
fn longest_first(chosen: &[(&Load, Effort)], table: &Range<usize>) -> Vec<usize> {
    let cost = |&at: &usize| {
        let Effort { warmup_ns, measure_ns, .. } = chosen[at].1;
        ((at - table.start) as u64 + 1).saturating_mul(warmup_ns.saturating_add(measure_ns))
    };
    let mut loads: Vec<usize> = table.clone().collect();
    loads.sort_by_key(|at| Reverse(cost(at)));
    loads
}

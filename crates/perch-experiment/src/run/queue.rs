// SPDX-License-Identifier: GPL-2.0-or-later
//! The simulations of a run as one queue, in which every load is a list: no worker waits for the last
//! simulation of a table, or of a load, while another load has any.

use std::cmp::Reverse;

use super::RunOptions;
use super::load::{Found, LoadRun, Trial};
use crate::cell::CellReport;
use crate::error::ExperimentError;
use crate::fit::Fit;
use crate::line::LineFound;
use crate::model::{Cell, Effort, Experiment, Load, machines};
use crate::pool::{Lists, Progress};
use crate::report::{ArmModes, Iterations, Report};
use crate::summary::Summary;
use crate::tally::LoadFound;

/// The loads of a run.
pub(super) struct Queue<'a, 'b> {
    experiment: &'a Experiment,
    cells: &'b [&'a Cell],
    options: &'b RunOptions,
    progress: Progress<'b>,
    loads: Vec<LoadRun<'a>>,
    /// The loads, as places in `loads`, in the order in which workers take them.
    order: Vec<usize>,
}

impl<'a, 'b> Queue<'a, 'b> {
    pub fn new(
        experiment: &'a Experiment,
        cells: &'b [&'a Cell],
        loads: Vec<LoadRun<'a>>,
        options: &'b RunOptions,
        progress: Progress<'b>,
    ) -> Queue<'a, 'b> {
        Queue { experiment, cells, options, progress, order: order(&loads), loads }
    }

    fn load_of(&self, cell: &Cell) -> &LoadRun<'a> {
        let load = &self.experiment.loads[cell.load];
        let found = self.loads.iter().find(|found| std::ptr::eq(found.load, load));
        found.expect("the loads of the cells are chosen")
    }

    /// Returns true where further repetitions of a load may decide a cell of it.
    fn is_open(&self, at: usize) -> bool {
        let found = &self.loads[at];
        let mut cells = self.cells.iter().filter(|cell| std::ptr::eq(self.load_of(cell), found));
        cells.any(|cell| CellReport::new(cell, found).is_open())
    }

    /// Returns the published line beside the simulated ones, where its load was simulated.
    fn line(&self) -> Option<LineFound> {
        let published = self.experiment.c2c.as_ref()?;
        let is_of = |found: &&LoadRun| {
            (&published.benchmark, &published.place) == (&found.load.benchmark, &found.load.place)
        };
        let found = self.loads.iter().find(is_of)?;
        let lines = found.arms.iter().zip(&found.kept);
        let arms = lines.filter_map(|(arm, kept)| kept.lines.found(&arm.name));
        Some(LineFound::new(published, arms.collect()))
    }

    /// Returns the report, when all simulations are there. `arms` were simulated, from the seed `base`.
    pub fn report(&self, arms: Vec<ArmModes>, base: u64) -> Report {
        let Queue { experiment, options, .. } = self;
        let cells = self.cells.iter().map(|cell| CellReport::new(cell, self.load_of(cell)));
        let cells: Vec<CellReport> = cells.collect();
        // In the order of the tables.
        let of = |load: &Load| self.loads.iter().find(|found| std::ptr::eq(found.load, load));
        Report {
            experiment: experiment.name.clone(),
            title: experiment.title.clone(),
            source: experiment.source.clone(),
            machine: machines(self.loads.iter().map(|found| found.load)).join(", "),
            era: experiment.era.to_string(),
            hz: experiment.hz,
            root_domain: experiment.root_domain.changed().map(str::to_string),
            model: crate::MODEL.to_string(),
            seed: base,
            effort: options.repetitions.is_none().then_some(options.thoroughness),
            arms,
            summary: Summary::of(&cells),
            fits: Fit::all(&cells),
            cells,
            iterations: self.loads.iter().filter_map(Iterations::of).collect(),
            loads: experiment.loads.iter().filter_map(of).map(LoadFound::new).collect(),
            machines_toml: Vec::new(),
            c2c: self.line(),
        }
    }
}

impl<'a> Lists for Queue<'a, '_> {
    type Task = Trial<'a>;
    type Found = Found;
    type Error = ExperimentError;

    fn lengths(&self) -> Vec<usize> {
        self.order.iter().map(|&at| self.loads[at].simulations()).collect()
    }

    fn task(&self, list: usize, index: usize) -> Trial<'a> {
        self.loads[self.order[list]].trial(index)
    }

    fn keep(&mut self, list: usize, index: usize, found: Found) -> Result<(), ExperimentError> {
        self.loads[self.order[list]].add(index, found);
        Ok(())
    }

    /// Simulates a load anew where it is not steady, and goes on with it where a cell is undecided.
    fn further(&mut self, list: usize) -> usize {
        let at = self.order[list];
        let load = &mut self.loads[at];
        if !load.lengthen(self.options.doublings()) {
            if load.repetitions() >= self.options.most(load.load, load.effort) || !self.is_open(at)
            {
                return 0;
            }
            self.loads[at].repeat();
        }
        self.loads[at].simulations()
    }

    fn advance(&mut self, done: usize, known: usize) -> Result<(), ExperimentError> {
        (self.progress)(done, known);
        Ok(())
    }
}

/// Returns the places of `loads` table by table, of each table the longest first. Tables list their rows
/// from the lightest to the heaviest, so a load's place in its table times its simulated time stands for
/// its cost.
fn order(loads: &[LoadRun]) -> Vec<usize> {
    let same = |a: &LoadRun, b: &LoadRun| {
        (&a.load.benchmark, &a.load.place) == (&b.load.benchmark, &b.load.place)
    };
    let mut order: Vec<usize> = Vec::new();
    for table in loads.chunk_by(same) {
        let cost = |&at: &usize| {
            let Effort { warmup_ns, measure_ns, .. } = table[at].effort;
            (at as u64 + 1).saturating_mul(warmup_ns.saturating_add(measure_ns))
        };
        let mut places: Vec<usize> = (0..table.len()).collect();
        places.sort_by_key(|at| Reverse(cost(at)));
        let begin = order.len();
        order.extend(places.into_iter().map(|at| begin + at));
    }
    order
}

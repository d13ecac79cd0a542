// SPDX-License-Identifier: GPL-2.0-or-later
//! The results of a run.

use super::kept::{Found, Kept};
use super::plan::Batch;
use crate::arm::Arm;
use crate::cell::{CellReport, LoadResult};
use crate::fit::Fit;
use crate::line::{LineFound, PublishedLine};
use crate::model::{Cell, Effort, Experiment, Load, machines};
use crate::report::{ArmModes, Iterations, Report};
use crate::seed::seed;
use crate::summary::Summary;
use crate::tally::LoadFound;
use crate::thoroughness::Thoroughness;

/// What is kept of the simulations of each load.
pub(super) struct Gathered<'a> {
    pub experiment: &'a Experiment,
    pub chosen: &'a [(&'a Load, Effort)],
    pub arms: &'a [&'a Arm],
    pub cells: &'a [&'a Cell],
    pub base: u64,
    /// How far the run goes on; none where its repetitions were given by hand.
    pub effort: Option<Thoroughness>,
    /// Which loads are too short for a verdict.
    is_short: Vec<bool>,
    kept: Vec<Kept>,
    /// How often each load's times were doubled.
    doubled: Vec<u32>,
}

impl<'a> Gathered<'a> {
    pub fn new(
        experiment: &'a Experiment,
        (chosen, is_short): (&'a [(&'a Load, Effort)], Vec<bool>),
        arms: &'a [&'a Arm],
        cells: &'a [&'a Cell],
        base: u64,
    ) -> Gathered<'a> {
        Gathered {
            experiment,
            chosen,
            arms,
            cells,
            base,
            effort: None,
            is_short,
            kept: chosen.iter().map(|_| Kept::new(arms.len())).collect(),
            doubled: vec![0; chosen.len()],
        }
    }

    /// Adds the next repetition of a load in an arm.
    pub fn add(&mut self, load: usize, arm: usize, found: Found) {
        self.kept[load].add(arm, found);
    }

    /// Returns the next repetitions of a load: the experiment's own number at first, and then as many
    /// as there are, so that they double each time.
    pub fn next(&self, load: usize) -> Batch<'a> {
        let (done, effort) = (self.repetitions(load), self.effort(load));
        Batch {
            load: self.chosen[load].0,
            effort,
            repetitions: done..(2 * done).max(effort.repetitions),
        }
    }

    /// Returns the number of repetitions of a load that are there.
    pub fn repetitions(&self, load: usize) -> u32 {
        self.kept[load].repetitions()
    }

    /// Returns the times of a load's simulations, and the number of repetitions that it begins with.
    fn effort(&self, load: usize) -> Effort {
        let effort = self.chosen[load].1;
        let factor = 1 << self.doubled[load];
        Effort {
            warmup_ns: effort.warmup_ns.saturating_mul(factor),
            measure_ns: effort.measure_ns.saturating_mul(factor),
            ..effort
        }
    }

    /// Doubles the times of a load one of whose scores still changes with time, at most `most` times.
    /// Returns true where it did: then the load has no repetitions.
    pub fn lengthen(&mut self, load: usize, most: u32) -> bool {
        let transients = self.kept[load].transients();
        let is_steady = self.effort(load).counts_the_beginning()
            || transients.iter().flatten().all(Option::is_none);
        if is_steady || self.doubled[load] >= most {
            return false;
        }
        self.doubled[load] += 1;
        self.kept[load] = Kept::new(self.arms.len());
        true
    }

    /// Returns true where further repetitions of a load may decide a cell of it.
    pub fn is_open(&self, load: usize) -> bool {
        let found = self.result(load, &self.kept[load]);
        self.cells_of(&found).any(|cell| cell.is_open())
    }

    fn result(&self, at: usize, kept: &Kept) -> LoadResult<'a> {
        let (load, effort) = (self.chosen[at].0, self.effort(at));
        let names = self.arms.iter().map(|arm| arm.name.as_str());
        let parts = [&load.benchmark, &load.place, "bootstrap"];
        LoadResult {
            load,
            effort,
            is_short: self.is_short[at],
            higher_is_better: kept.higher_is_better.clone(),
            transients: kept.transients(),
            arms: names.zip(kept.values.iter().cloned()).collect(),
            draws: seed(self.base, &parts, 0),
        }
    }

    /// Returns the cells that show scores of a load.
    fn cells_of<'b>(&'b self, found: &'b LoadResult) -> impl Iterator<Item = CellReport> + 'b {
        let loads = &self.experiment.loads;
        let here = |cell: &&&Cell| std::ptr::eq(&loads[cell.load], found.load);
        let cells = self.cells.iter().filter(here);
        cells.map(|cell| CellReport::new(cell, found))
    }

    /// Returns the published line beside the simulated ones, where its load was simulated.
    fn line(&self) -> Option<LineFound> {
        let published = self.experiment.c2c.as_ref()?;
        let at = self.chosen.iter().position(|(load, _)| is_of(published, load))?;
        let lines = self.arms.iter().zip(&self.kept[at].lines);
        let arms = lines.filter_map(|(arm, lines)| lines.found(&arm.name));
        Some(LineFound::new(published, arms.collect()))
    }

    /// Returns the counts of the loads that were simulated, in the order of the tables.
    fn loads(&self) -> Vec<LoadFound> {
        let found = self.experiment.loads.iter().filter_map(|load| {
            let at = self.chosen.iter().position(|(other, _)| std::ptr::eq(*other, load))?;
            let tallies = &self.kept[at].tallies;
            (!tallies.is_empty()).then(|| LoadFound::new(load, self.arms, tallies))
        });
        found.collect()
    }

    /// Returns the report, when all simulations are there.
    pub fn report(&self) -> Report {
        let experiment = self.experiment;
        let modes = |arm: &&Arm| ArmModes { name: arm.name.clone(), modes: arm.words() };
        let results: Vec<LoadResult> =
            self.kept.iter().enumerate().map(|(at, kept)| self.result(at, kept)).collect();
        let report = |cell: &&Cell| {
            let load = &experiment.loads[cell.load];
            let found = results.iter().find(|found| std::ptr::eq(found.load, load));
            CellReport::new(cell, found.expect("the loads of the cells are chosen"))
        };
        let cells: Vec<CellReport> = self.cells.iter().map(report).collect();
        Report {
            experiment: experiment.name.clone(),
            title: experiment.title.clone(),
            source: experiment.source.clone(),
            machine: machines(self.chosen.iter().map(|(load, _)| *load)).join(", "),
            era: experiment.era.to_string(),
            hz: experiment.hz,
            root_domain: experiment.root_domain.changed().map(str::to_string),
            model: crate::MODEL.to_string(),
            seed: self.base,
            effort: self.effort,
            arms: self.arms.iter().map(modes).collect(),
            summary: Summary::of(&cells),
            fits: Fit::all(&cells),
            cells,
            iterations: results.iter().filter_map(Iterations::of).collect(),
            loads: self.loads(),
            machines_toml: Vec::new(),
            c2c: self.line(),
        }
    }
}

/// True where a published line is of this load.
fn is_of(line: &PublishedLine, load: &Load) -> bool {
    (&line.benchmark, &line.place) == (&load.benchmark, &load.place)
}

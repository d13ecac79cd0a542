// SPDX-License-Identifier: GPL-2.0-or-later
//! A load of a run: its simulations, and what they came to.

use std::fmt::Display;
use std::ops::Range;

use perch_sim::{Batch, Outcome, Score};

use crate::arm::Arm;
use crate::error::ExperimentError;
use crate::kept::{ArmKept, ScoreKept};
use crate::model::{Effort, Load};
use crate::seed::seed;

/// One simulation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial<'a> {
    pub load: &'a Load,
    pub arm: &'a Arm,
    pub effort: Effort,
    pub seed: u64,
    pub repetition: u32,
}

impl Trial<'_> {
    /// Returns the error of this simulation.
    pub fn failed(&self, reason: &dyn Display) -> ExperimentError {
        let repetition = self.repetition as usize;
        ExperimentError::run(&self.load.path(), &self.arm.name, repetition, reason)
    }
}

/// The result of one simulation: the scores that the experiment wants of the load, in that order, and
/// all that was counted.
pub(crate) type Found = (Outcome, Vec<Batch>);

/// A load of a run. Of its simulations the scores are kept, and sums of everything else.
pub(crate) struct LoadRun<'a> {
    pub load: &'a Load,
    /// The arms, `baseline` and `patched` first.
    pub arms: &'a [&'a Arm],
    /// The times of each simulation, and the number of repetitions to begin with.
    pub effort: Effort,
    /// True where the times are too short for a verdict.
    pub is_short: bool,
    /// The seed of a bootstrap's draws.
    pub draws: u64,
    /// The scores of the first simulation; all have the same.
    pub described: Vec<Score>,
    pub kept: Vec<ArmKept>,
    /// How often the times were doubled.
    doubled: u32,
    /// The seed that those of the simulations are derived from.
    base: u64,
    /// The repetitions that are simulated now: arm by arm, in each by number. No list of them is kept.
    repetitions: Range<u32>,
}

impl<'a> LoadRun<'a> {
    pub fn new(load: &'a Load, effort: Effort, arms: &'a [&'a Arm], base: u64) -> LoadRun<'a> {
        let mut run = LoadRun {
            load,
            arms,
            effort,
            is_short: false,
            draws: seed(base, &[&load.benchmark, &load.place, "bootstrap"], 0),
            described: Vec::new(),
            kept: Vec::new(),
            doubled: 0,
            base,
            repetitions: 0..0,
        };
        run.begin(effort);
        run
    }

    /// Returns the number of simulations of all arms that are made now.
    pub fn simulations(&self) -> usize {
        self.repetitions.len() * self.arms.len()
    }

    /// Returns simulation `index` of those that are made now.
    pub fn trial(&self, index: usize) -> Trial<'a> {
        let within = index % self.repetitions.len();
        let repetition = self.repetitions.start + within as u32;
        Trial {
            load: self.load,
            arm: self.arms[index / self.repetitions.len()],
            effort: self.effort,
            seed: seed(self.base, &self.load.parts(), repetition),
            repetition,
        }
    }

    /// Adds the result of simulation `index`.
    pub fn add(&mut self, index: usize, (outcome, batches): Found) {
        self.kept[index / self.repetitions.len()].add(&outcome, &batches);
        if self.described.is_empty() {
            self.described = outcome.scores;
        }
    }

    /// Returns the number of repetitions that are there when all that are made now are.
    pub fn repetitions(&self) -> u32 {
        self.repetitions.end
    }

    /// Goes on with as many repetitions as there are, so that they double each time.
    pub fn repeat(&mut self) {
        let done = self.repetitions.end;
        self.repetitions = done..2 * done;
    }

    /// Doubles the times where one of the scores still changes with time, at most `most` times. Returns
    /// true where it did: then the load has no repetitions.
    pub fn lengthen(&mut self, most: u32) -> bool {
        // What is kept has figures beside these scores.
        let scores = self.kept.iter().flat_map(|arm| &arm.scores[..self.described.len()]);
        let is_steady = self.effort.counts_the_beginning()
            || scores.map(ScoreKept::transient).all(|transient| transient.is_none());
        if is_steady || self.doubled >= most {
            return false;
        }
        self.doubled += 1;
        self.begin(Effort {
            warmup_ns: self.effort.warmup_ns.saturating_mul(2),
            measure_ns: self.effort.measure_ns.saturating_mul(2),
            ..self.effort
        });
        true
    }

    /// Begins anew, with other times.
    pub fn begin(&mut self, effort: Effort) {
        self.effort = effort;
        self.kept = self.arms.iter().map(|_| ArmKept::default()).collect();
        self.repetitions = 0..effort.repetitions;
    }

    /// Returns the simulated time in milliseconds until which a score changed with time while it was
    /// measured, in the baseline or in the patched arm; none where it counts the beginning.
    pub fn transient_ms(&self, score: usize) -> Option<f64> {
        if self.effort.counts_the_beginning() {
            return None;
        }
        let arms = self.kept.iter().take(2);
        let last = arms.filter_map(|arm| arm.scores[score].transient()).reduce(f64::max);
        last.map(|part| self.effort.moment_ms(part))
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The simulations of a run, and the order in which workers take them.

use std::fmt::Display;
use std::ops::Range;

use crate::arm::Arm;
use crate::error::ExperimentError;
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

impl Trial<'_> {
    /// Returns the error of this simulation.
    pub fn failed(&self, reason: &dyn Display) -> ExperimentError {
        let Trial { load, arm, repetition, .. } = self;
        ExperimentError::Run {
            what: format!("{}, arm {}, repetition {repetition}", load.path(), arm.name),
            reason: reason.to_string(),
        }
    }
}

/// Repetitions of one load, in every arm: its simulations arm by arm, in each by repetition. No list
/// of them is kept.
#[derive(Clone, Debug)]
pub(super) struct Batch<'a> {
    pub load: &'a Load,
    pub effort: Effort,
    /// The numbers of the repetitions.
    pub repetitions: Range<u32>,
}

impl<'a> Batch<'a> {
    /// Returns the number of simulations in so many arms.
    pub fn simulations(&self, arms: usize) -> usize {
        self.repetitions.len() * arms
    }

    /// Returns the arm of simulation `index`, as an index.
    pub fn arm(&self, index: usize) -> usize {
        index / self.repetitions.len()
    }

    /// Returns simulation `index`.
    pub fn trial(&self, index: usize, arms: &[&'a Arm], base: u64) -> Trial<'a> {
        let within = index % self.repetitions.len();
        let repetition = self.repetitions.start + within as u32;
        Trial {
            load: self.load,
            arm: arms[self.arm(index)],
            effort: self.effort,
            seed: seed(base, &self.load.parts(), repetition),
            repetition,
        }
    }
}

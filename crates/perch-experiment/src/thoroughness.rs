// SPDX-License-Identifier: GPL-2.0-or-later
//! How far simulations go on until a figure is decided.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The effort that a run or a comparison may spend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Thoroughness {
    /// An experiment: the times and repetitions of its file, or as much of them as some seconds of a
    /// core simulate for each row. A comparison: 10 million events per arm.
    Quick,
    /// An experiment: up to 4 times the repetitions of its file. A comparison: 100 million
    /// events an arm.
    #[default]
    Normal,
    /// An experiment: up to 32 times the repetitions of its file. A comparison: 2 billion events
    /// an arm.
    Full,
}

impl Thoroughness {
    /// Returns the word of `--effort`.
    pub fn name(self) -> &'static str {
        match self {
            Thoroughness::Quick => "quick",
            Thoroughness::Normal => "normal",
            Thoroughness::Full => "full",
        }
    }

    /// Returns how often the times of a load may be doubled until its scores are steady, and its
    /// repetitions while one of its cells is undecided.
    pub(crate) fn doublings(self) -> u32 {
        match self {
            Thoroughness::Quick => 0,
            Thoroughness::Normal => 2,
            Thoroughness::Full => 5,
        }
    }

    /// Returns the simulated events that a row of an experiment may spend, in all arms and repetitions
    /// together; none where the experiment's times decide.
    pub(crate) fn events_a_row(self) -> Option<u64> {
        match self {
            Thoroughness::Quick => Some(10_000_000),
            Thoroughness::Normal | Thoroughness::Full => None,
        }
    }

    /// Returns the simulated events that a comparison may spend on an arm, all its repetitions together.
    /// A core simulates some 5 to 10 million of them a second.
    pub(crate) fn events_an_arm(self) -> u64 {
        match self {
            Thoroughness::Quick => 10_000_000,
            Thoroughness::Normal => 100_000_000,
            Thoroughness::Full => 2_000_000_000,
        }
    }
}

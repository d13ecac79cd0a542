// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch lab mark`: tells the plugin of a guest when counting begins and ends.

use clap::Subcommand;
use perch_lab::coherence::{self, Mark, SLOTS};

use crate::output::Failure;

/// A mark. Outside of a guest that counts it is an instruction without an effect.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum Marking {
    /// Begin to count into a slot
    Start {
        /// The slot
        #[arg(default_value_t = 0, value_parser = clap::value_parser!(u8).range(..i64::from(SLOTS)))]
        slot: u8,
    },
    /// Note that an operation is done
    Round,
    /// End the counting into a slot
    Stop {
        /// The slot
        #[arg(default_value_t = 0, value_parser = clap::value_parser!(u8).range(..i64::from(SLOTS)))]
        slot: u8,
    },
}

/// Executes a mark.
pub fn run(marking: Marking) -> Result<(), Failure> {
    let mark = match marking {
        Marking::Start { slot } => Mark::Start(slot),
        Marking::Round => Mark::Round,
        Marking::Stop { slot } => Mark::Stop(slot),
    };
    if coherence::mark(mark) {
        Ok(())
    } else {
        Err(Failure::input("marks are instructions of x86-64 CPUs"))
    }
}

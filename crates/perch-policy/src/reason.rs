// SPDX-License-Identifier: GPL-2.0-or-later
//! The reasons why a CPU was chosen: those of policy/include/perch/mechanisms.def.

/// In what state a reason says that the chosen CPU was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// No decision was made.
    None,
    /// No search was needed to find it.
    Given,
    /// The search found it idle.
    Idle,
    /// The search found nothing idle, and the wakee waits there.
    Queued,
    /// A balance over groups of CPUs chose it.
    Slow,
}

include!(concat!(env!("OUT_DIR"), "/reasons.rs"));

impl Reason {
    /// The name under which it is counted.
    pub fn name(self) -> &'static str {
        NAMES[self as usize].0
    }

    /// What it says of the choice, in a sentence.
    pub fn meaning(self) -> &'static str {
        NAMES[self as usize].2
    }

    /// In what state it says that the chosen CPU was found.
    pub fn class(self) -> Class {
        NAMES[self as usize].1
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's contended cache lines, and the time that CPUs have waited for them.

use crate::hardware::{C2c, Lines};

/// The kernel's contended cache lines, and the flag in one of them that the model reads itself.
#[derive(Debug)]
pub(crate) struct Contended {
    /// The lines, where the machine has figures for them.
    pub(super) lines: Option<Lines>,
    /// The root domain's flag: some queue has more than one task, or some CPU a task that does not
    /// fit it. The kernel sets it early and clears it lazily.
    pub(super) overload: bool,
}

impl Contended {
    pub fn new(lines: Option<Lines>) -> Contended {
        Contended { lines, overload: false }
    }

    /// Sets the counts back.
    pub fn start_counting(&mut self) {
        if let Some(lines) = &mut self.lines {
            lines.start_counting();
        }
    }

    /// Returns the counts of the accesses to these lines, where they are modelled.
    pub fn counted(&self) -> Option<Box<C2c>> {
        self.lines.as_ref().map(|lines| Box::new(lines.counted()))
    }
}

/// The time that a CPU has waited for lines.
#[derive(Debug, Default)]
pub(crate) struct Owed {
    /// The nanoseconds that the CPU has waited and that were not charged to any task yet.
    pub(super) ns: u64,
    /// The time of the last wait, in nanoseconds.
    pub(super) since_ns: u64,
}

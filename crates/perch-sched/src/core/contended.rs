// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's contended cache lines, and what CPUs have waited for them.

use crate::hardware::{C2c, Lines};

/// The kernel's contended cache lines, and the flag in one of them that the model reads itself.
#[derive(Debug)]
pub(crate) struct Contended {
    /// The lines, where the machine has figures for them.
    pub(super) lines: Option<Lines>,
    /// Some queue has more than one task, or a CPU a task that does not fit it (the root domain's
    /// flag; set early, cleared lazily).
    pub(super) overload: bool,
}

impl Contended {
    pub fn new(lines: Option<Lines>) -> Contended {
        Contended {
            lines,
            overload: false,
        }
    }

    /// Begins to count anew.
    pub fn start_counting(&mut self) {
        if let Some(lines) = &mut self.lines {
            lines.start_counting();
        }
    }

    /// Who met whom at these lines, where they are modelled.
    pub fn counted(&self) -> Option<Box<C2c>> {
        self.lines.as_ref().map(|lines| Box::new(lines.counted()))
    }
}

/// What a CPU has waited for lines.
#[derive(Debug, Default)]
pub(crate) struct Owed {
    /// Nanoseconds that it has waited and nobody has spent yet.
    pub(super) ns: u64,
    /// When they were last more.
    pub(super) since_ns: u64,
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! What the real-time class may know of the classes below it.

use crate::core::Sched;

impl Sched<'_> {
    /// Tasks of the classes below the real-time one on a CPU.
    #[inline]
    pub(in crate::class) fn nr_below_rt(&self, cpu: usize) -> u32 {
        self.nr_fair(cpu)
    }

    /// Whether one of those tasks could run.
    #[inline]
    pub(in crate::class) fn waits_below_rt(&self, cpu: usize) -> bool {
        self.nr_fair(cpu) > self.nr_delayed(cpu)
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The questions that the real-time class may ask about the classes below it.

use perch_policy::Change;

use crate::class::RunQueues;

impl RunQueues {
    /// Returns the number of tasks on `cpu` of the classes below the real-time one.
    #[inline]
    pub(in crate::class) fn nr_below_rt(&self, cpu: usize) -> u32 {
        self.nr_fair(cpu) + self.nr_ext(cpu)
    }

    /// Returns whether one of those tasks for which there is a server is runnable, that is, not delayed.
    #[inline]
    pub(in crate::class) fn waits_below_rt(&self, cpu: usize) -> bool {
        let fair = self.nr_fair(cpu) > self.nr_delayed(cpu);
        fair || self.rules.has(Change::ExtServer) && self.nr_ext(cpu) > 0
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Accounting the running task's time, whatever its class is.

use super::ask::Rank;
use crate::core::Sched;

impl Sched<'_> {
    /// Accounts the running task's time.
    #[inline]
    pub(crate) fn update_current(&mut self, cpu: usize) {
        let Some(task) = self.cpus[cpu].current else {
            return;
        };
        match self.rank_running(cpu) {
            Rank::Fair => self.account_fair(cpu, task),
            Rank::Rt => self.account_rt(cpu, task),
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The accounting of the running task's time, in any class.

use super::ask::Rank;
use crate::class::RunQueues;

impl RunQueues {
    /// Accounts the run time of the running task of `cpu` up to now.
    #[inline]
    pub(crate) fn update_current(&mut self, cpu: usize) {
        let Some(task) = self.cpus[cpu].current else {
            return;
        };
        match self.rank_running(cpu) {
            Rank::Ext => self.account_ext(cpu, task),
            Rank::Fair => self.account_fair(cpu, task),
            Rank::Rt => self.account_rt(cpu, task),
        }
    }
}

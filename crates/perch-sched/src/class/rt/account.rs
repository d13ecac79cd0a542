// SPDX-License-Identifier: GPL-2.0-or-later
//! The accounting of the time that a real-time task runs, for the task and for its CPU's average.

use crate::class::RunQueues;
use crate::class::pelt::Activity;
use crate::id::TaskId;

impl RunQueues {
    /// Updates the CPU's real-time average. The caller does so before the CPU's running task
    /// changes.
    pub(super) fn touch_rt(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let now = c.pelt.read(self.now);
        let did = if c.rt.running {
            Activity { weight: 0, runnable: 1, running: true }
        } else {
            Activity::NONE
        };
        c.rt.average.update(now, did);
    }

    /// Charges the running task the time since the last accounting.
    #[inline(never)]
    pub(in crate::class) fn account_rt(&mut self, cpu: usize, task: TaskId) {
        let now = self.now;
        let delta = self.run_time_mut(task).account(now);
        if delta > 0 {
            let rule = self.rules.rt_limit;
            self.cpus[cpu].rt.limit.runs(rule, delta);
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Accounting the time that a real-time task runs, to the task and to its CPU's average.

use crate::class::pelt::Activity;
use crate::core::Sched;
use crate::id::TaskId;

impl Sched<'_> {
    /// Brings the CPU's real-time average up to date; to be called before it changes who runs.
    pub(super) fn touch_rt(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let now = c.pelt.read(self.now);
        let did = match c.rt.running {
            true => Activity {
                weight: 0,
                runnable: 1,
                running: true,
            },
            false => Activity::NONE,
        };
        c.rt.average.update(now, did);
    }

    /// Accounts the running task's time.
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

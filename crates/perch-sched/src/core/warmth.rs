// SPDX-License-Identifier: GPL-2.0-or-later
//! The lines that tasks find in the caches of the CPUs that they come to.

use super::Sched;
use crate::hardware::Use;
use crate::id::TaskId;

impl Sched<'_> {
    /// Notes where the lines of `task`, which leaves `cpu`, are cached.
    pub(crate) fn leave_caches(&mut self, cpu: usize, task: TaskId) {
        let fill = self.cpus[cpu].fill;
        let t = self.rq.task_mut(task);
        t.warm_cpu = Some(cpu as u32);
        t.warm_fill = fill;
    }

    /// The running task begins another stretch of computing, and uses its own lines and its
    /// process's, as far as the last-level caches hold them.
    #[inline]
    pub fn use_caches(&mut self, cpu: usize, task: TaskId) {
        self.touch_llc(cpu, task, Some(cpu), 0);
    }

    /// The running task uses its own lines and its process's, as far as the last-level caches hold
    /// them. It ran on `warm` before, and other tasks have used `others` lines there since then.
    pub(super) fn touch_llc(&mut self, cpu: usize, task: TaskId, warm: Option<usize>, others: u64) {
        let Some(llcs) = &mut self.llcs else {
            return;
        };
        let t = self.rq.task_mut(task);
        let charge =
            llcs.touch(&self.costs, &Use { task, cpu, footprint: t.footprint.lines, warm, others });
        t.debt_ns += charge.ns;
        self.cpus[cpu].fill += charge.filled;
    }
}

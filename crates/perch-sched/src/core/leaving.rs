// SPDX-License-Identifier: GPL-2.0-or-later
//! CPUs that are about to idle. A CPU whose last task has fallen asleep still runs that task's call
//! of the scheduler for a while, and does not count as idle until it has switched to its idle task.
//! A waker that wants such a CPU's task itself does not choose: it sends the task to the CPU that
//! it is leaving.

use std::collections::VecDeque;

use super::Sched;
use crate::id::TaskId;

/// The CPUs that are about to idle, in the order in which they will: each takes as long.
#[derive(Debug, Default)]
pub(crate) struct Leaving(VecDeque<(u64, usize)>);

/// The last task that fell asleep on a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leaver {
    task: Option<TaskId>,
    /// When the CPU that it left idle has switched away from it, nanoseconds.
    gone_ns: u64,
}

impl Leaver {
    /// Notes that `task` has fallen asleep.
    #[inline]
    pub fn sleeps(&mut self, task: TaskId) {
        self.task = Some(task);
    }
}

impl Sched<'_> {
    /// Begins the switch of `cpu` to its idle task. Returns whether that takes time.
    #[inline]
    pub(super) fn begin_leaving(&mut self, cpu: usize) -> bool {
        let takes_ns = self.costs.switch_out_ns();
        if takes_ns == 0 {
            return false;
        }
        let gone_ns = self.rq.now() + takes_ns;
        self.cpus[cpu].leaver.gone_ns = gone_ns;
        self.leaving.0.push_back((gone_ns, cpu));
        true
    }

    /// Lets the CPUs count as idle that have switched to their idle task by now.
    #[inline]
    pub(super) fn end_leaving(&mut self) {
        let now = self.rq.now();
        while self.leaving.0.front().is_some_and(|&(at, _)| at <= now) {
            self.leave_behind();
        }
    }

    fn leave_behind(&mut self) {
        let Some((at_ns, cpu)) = self.leaving.0.pop_front() else {
            return;
        };
        let c = &self.cpus[cpu];
        // The CPU may have run another task since, and be about to idle again.
        let is_last = c.leaver.gone_ns == at_ns;
        if is_last && c.inbox.is_empty() && self.rq.current(cpu).is_none() && self.rq.nr(cpu) == 0 {
            self.host.set_idle(cpu, true);
            self.note_idle_core(cpu);
        }
    }

    /// Lets `cpu`, which is about to idle, count as idle at once.
    #[cold]
    pub(super) fn hurry_leaving(&mut self, cpu: usize) {
        self.cpus[cpu].leaver.gone_ns = self.rq.now();
        if self.cpus[cpu].inbox.is_empty() && self.rq.nr(cpu) == 0 {
            self.host.set_idle(cpu, true);
            self.note_idle_core(cpu);
        }
    }

    /// Returns for how long `cpu`, which runs no task, is still about to idle, in nanoseconds.
    #[inline]
    pub(crate) fn leaves_for_ns(&self, cpu: usize) -> u64 {
        match self.rq.current(cpu) {
            Some(_) => 0,
            None => self.cpus[cpu].leaver.gone_ns.saturating_sub(self.rq.now()),
        }
    }

    /// Returns for how long `cpu` is still about to switch away from `task`, which fell asleep
    /// there, to its idle task (`on_cpu`), in nanoseconds.
    #[inline]
    pub(super) fn is_left_for_ns(&self, cpu: usize, task: TaskId) -> u64 {
        match self.cpus[cpu].leaver.task {
            Some(leaver) if leaver == task => self.leaves_for_ns(cpu),
            _ => 0,
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! CPUs that are about to idle. A CPU whose last task has fallen asleep still runs that task's call
//! of the scheduler for a while, in which it may also look for a task elsewhere. It does not count
//! as idle until it has switched to its idle task. A waker that wants that very task does not
//! choose: it sends the task back to the CPU.

use super::Sched;
use super::later::Due;
use crate::id::TaskId;

/// A CPU's last task, if it has fallen asleep and none has run since.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leaver {
    task: Option<TaskId>,
    /// When the CPU that it left idle has switched away from it, nanoseconds.
    gone_ns: u64,
}

impl Leaver {
    /// Notes that a task runs.
    #[inline]
    pub fn runs(&mut self) {
        self.task = None;
    }

    /// Notes that `task`, which ran, has fallen asleep.
    #[inline]
    pub fn sleeps(&mut self, task: TaskId) {
        self.task = Some(task);
    }
}

impl Sched<'_> {
    /// Begins the switch of `cpu` to its idle task. Returns whether that takes time.
    #[inline]
    pub(super) fn begin_leaving(&mut self, cpu: usize) -> bool {
        if self.costs.switch_out_ns() == 0 {
            return false;
        }
        let gone_ns = self.leaves_at(cpu, self.rq.now());
        self.later.add(gone_ns, Due::Left(cpu));
        true
    }

    /// Lets `cpu` begin its switch to its idle task at `at_ns`. Returns when it will have switched,
    /// nanoseconds.
    pub(super) fn leaves_at(&mut self, cpu: usize, at_ns: u64) -> u64 {
        let gone_ns = at_ns + self.costs.switch_out_ns();
        self.cpus[cpu].leaver.gone_ns = gone_ns;
        gone_ns
    }

    /// Lets `cpu` count as idle, which was to switch to its idle task at `gone_ns`. It may have run
    /// another task since, and be about to idle again.
    #[inline]
    pub(super) fn end_leaving(&mut self, cpu: usize, gone_ns: u64) {
        if self.cpus[cpu].leaver.gone_ns == gone_ns {
            self.count_as_idle(cpu);
        }
    }

    /// Lets `cpu`, which is about to idle, count as idle at once. Returns the time by which that is
    /// too early, in nanoseconds.
    #[cold]
    pub(super) fn hurry_leaving(&mut self, cpu: usize) -> u64 {
        let early_ns = self.leaves_for_ns(cpu);
        self.cpus[cpu].leaver.gone_ns = self.rq.now();
        self.count_as_idle(cpu);
        early_ns
    }

    /// Returns for how long `cpu`, which runs no task, is still about to idle, in nanoseconds.
    #[inline]
    pub(crate) fn leaves_for_ns(&self, cpu: usize) -> u64 {
        match self.rq.current(cpu) {
            Some(_) => 0,
            None => self.cpus[cpu].leaver.gone_ns.saturating_sub(self.rq.now()),
        }
    }

    /// Returns whether `cpu` is still about to switch away from `task`, which fell asleep there, to
    /// its idle task (`on_cpu`).
    #[inline]
    pub(super) fn is_left_by(&self, cpu: usize, task: TaskId) -> bool {
        self.cpus[cpu].leaver.task == Some(task) && self.leaves_for_ns(cpu) > 0
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! CPUs that are about to idle. A CPU whose last task has fallen asleep still runs that task's call
//! of the scheduler for a while, in which it may also look for a task elsewhere. It does not count
//! as idle until it has switched to its idle task. A waker that wants that very task does not
//! choose: it sends the task back to the CPU.

use std::collections::VecDeque;

use super::Sched;
use crate::id::TaskId;

/// The CPUs that are about to idle, with the times at which they will, in this order.
#[derive(Debug, Default)]
pub(crate) struct Leaving(VecDeque<(u64, usize)>);

impl Leaving {
    /// Adds a CPU, behind those that idle no later. Most take as long as one another, so that it
    /// is the last.
    fn add(&mut self, gone_ns: u64, cpu: usize) {
        let later = self.0.iter().rev().take_while(|&&(at, _)| at > gone_ns);
        let place = self.0.len() - later.count();
        self.0.insert(place, (gone_ns, cpu));
    }
}

/// A CPU's last task, if it has fallen asleep and none has run since.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leaver {
    task: Option<TaskId>,
    /// When the CPU that it left idle has switched away from it, nanoseconds.
    gone_ns: u64,
    /// The time that the CPU then spent on looking for a task elsewhere, in vain, nanoseconds.
    searched_ns: u64,
}

impl Leaver {
    /// Notes that a task runs.
    #[inline]
    pub fn runs(&mut self) {
        self.task = None;
        self.searched_ns = 0;
    }

    /// Notes that `task`, which ran, has fallen asleep.
    #[inline]
    pub fn sleeps(&mut self, task: TaskId) {
        self.task = Some(task);
    }
}

impl Sched<'_> {
    /// Notes that `cpu`, which has run out of tasks, looks for one elsewhere for this long.
    #[inline]
    pub(crate) fn searches(&mut self, cpu: usize, ns: u64) {
        self.cpus[cpu].leaver.searched_ns = ns;
    }

    /// Begins the switch of `cpu` to its idle task. Returns whether that takes time.
    #[inline]
    pub(super) fn begin_leaving(&mut self, cpu: usize) -> bool {
        let searched_ns = std::mem::take(&mut self.cpus[cpu].leaver.searched_ns);
        let takes_ns = match self.costs.switch_out_ns() {
            0 => return false,
            ns => ns + searched_ns,
        };
        let gone_ns = self.rq.now() + takes_ns;
        self.cpus[cpu].leaver.gone_ns = gone_ns;
        self.leaving.add(gone_ns, cpu);
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
        // The CPU may have run another task since, and be about to idle again.
        if self.cpus[cpu].leaver.gone_ns == at_ns {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_idle_in_the_order_of_time() {
        let mut leaving = Leaving::default();
        for (at, cpu) in [
            (700, 0),
            (9000, 1),
            (800, 2),
            (700, 3),
            (9000, 4),
            (10_000, 5),
        ] {
            leaving.add(at, cpu);
        }
        let order: Vec<usize> = leaving.0.iter().map(|&(_, cpu)| cpu).collect();
        assert_eq!(order, [0, 3, 2, 1, 4, 5]);
    }
}

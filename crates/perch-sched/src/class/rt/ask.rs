// SPDX-License-Identifier: GPL-2.0-or-later
//! The questions to the real-time class about a task or a CPU.

use super::state::RtDomain;
use crate::class::RunQueues;
use crate::class::pelt::Average;
use crate::id::TaskId;

impl RunQueues {
    /// # Panics
    /// No task of the workload is real-time. Without such a task no function asks.
    pub(super) fn rt_domain(&self) -> &RtDomain {
        self.rt.as_ref().expect("a real-time task")
    }

    pub(super) fn rt_domain_mut(&mut self) -> &mut RtDomain {
        self.rt.as_mut().expect("a real-time task")
    }

    /// Returns whether `task` is in this class. On a machine without such tasks the answer costs a
    /// comparison.
    #[inline]
    pub(in crate::class) fn is_rt(&self, task: TaskId) -> bool {
        self.rt.is_some() && self.tasks[task].rt.priority > 0
    }

    /// Returns whether `cpu` runs a task of this class.
    #[inline]
    pub(in crate::class) fn runs_rt(&self, cpu: usize) -> bool {
        self.rt.is_some() && self.cpus[cpu].rt.running
    }

    /// Returns the priority of `task`; 0 for a fair one.
    pub(super) fn priority(&self, task: TaskId) -> u8 {
        self.tasks[task].rt.priority
    }

    /// Returns the priority of the task that `cpu` runs; 0 if that is a fair task or none.
    pub(super) fn running_priority(&self, cpu: usize) -> u8 {
        self.cpus[cpu].current.map_or(0, |task| self.priority(task))
    }

    /// Returns whether `task` may run on several CPUs.
    pub(super) fn may_move(&self, task: TaskId) -> bool {
        self.affinities[self.tasks[task].affinity].weight() > 1
    }

    /// Returns the number of real-time tasks that count as runnable on `cpu`: none while the class
    /// is throttled there.
    #[inline]
    pub(crate) fn nr_rt(&self, cpu: usize) -> u32 {
        self.cpus[cpu].rt.nr()
    }

    /// Returns the averages of the CPU's real-time tasks.
    pub(in crate::class) fn rt_average(&self, cpu: usize) -> &Average {
        &self.cpus[cpu].rt.average
    }

    /// Returns the real-time priority of `task`, 0 for a task of another class, and whether the
    /// task is the first of those that wait on its CPU and may run elsewhere.
    pub(crate) fn rt_rank(&self, task: TaskId) -> (u8, bool) {
        let priority = self.priority(task);
        let pushable = &self.cpus[self.tasks[task].cpu].rt.pushable;
        (priority, pushable.first() == Some((priority, task)))
    }

    /// Returns the real-time tasks that wait on `cpu`, in the order of their queue.
    pub(crate) fn rt_waiting(&self, cpu: usize) -> impl Iterator<Item = TaskId> + '_ {
        let c = &self.cpus[cpu];
        let tasks = c.rt.runnable.iter().map(|(_, task)| task);
        tasks.filter(|&task| c.current != Some(task))
    }

    /// Returns whether real-time tasks of the CPU's queue may run now.
    #[inline]
    pub(super) fn rt_may_run(&self, cpu: usize) -> bool {
        let limit = &self.cpus[cpu].rt.limit;
        !(limit.is_throttled() || limit.serves() && self.waits_below_rt(cpu))
    }
}

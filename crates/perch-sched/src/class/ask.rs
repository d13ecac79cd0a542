// SPDX-License-Identifier: GPL-2.0-or-later
//! What other rooms ask about the class of a task, and about the tasks of all classes on a CPU.

use crate::core::Sched;
use crate::id::TaskId;

/// The class of a task, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Fair,
    Rt,
}

impl Sched<'_> {
    #[inline]
    pub(super) fn rank(&self, task: TaskId) -> Rank {
        match self.is_rt(task) {
            true => Rank::Rt,
            false => Rank::Fair,
        }
    }

    #[inline]
    pub(super) fn rank_running(&self, cpu: usize) -> Rank {
        match self.runs_rt(cpu) {
            true => Rank::Rt,
            false => Rank::Fair,
        }
    }

    /// Runnable tasks of all classes on a CPU, the running one included.
    #[inline]
    pub fn nr(&self, cpu: usize) -> u32 {
        self.nr_fair(cpu) + self.nr_rt(cpu)
    }

    /// The running task of a CPU if the balancer may move it: one of the lowest class.
    #[inline]
    pub(crate) fn fair_current(&self, cpu: usize) -> Option<TaskId> {
        self.cpus[cpu].current.filter(|_| !self.runs_rt(cpu))
    }

    /// Whether a task is one that the balancer may move, of the lowest class.
    #[inline]
    pub(crate) fn is_balanced(&self, task: TaskId) -> bool {
        self.rank(task) == Rank::Fair
    }

    /// Whether the classes together leave a CPU no idle time.
    pub(crate) fn is_full(&self, cpu: usize) -> bool {
        self.fair_average(cpu).is_full_with(self.rt_average(cpu))
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The questions of other rooms about the class of a task, and about the tasks of all classes on a
//! CPU.

use crate::class::RunQueues;
use crate::id::TaskId;

/// The class of a task, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Fair,
    Rt,
}

impl RunQueues {
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

    /// Returns the number of runnable tasks of all classes on `cpu`, the running one included.
    #[inline]
    pub fn nr(&self, cpu: usize) -> u32 {
        self.nr_fair(cpu) + self.nr_rt(cpu)
    }

    /// Returns the running task of `cpu` if the balancer may move it: a task of the lowest class.
    #[inline]
    pub(crate) fn fair_current(&self, cpu: usize) -> Option<TaskId> {
        self.cpus[cpu].current.filter(|_| !self.runs_rt(cpu))
    }

    /// Returns whether the balancer may move `task`: a task of the lowest class.
    #[inline]
    pub(crate) fn is_balanced(&self, task: TaskId) -> bool {
        self.rank(task) == Rank::Fair
    }

    /// Returns whether the classes together leave `cpu` no idle time, as their averages show.
    pub(crate) fn is_full(&self, cpu: usize) -> bool {
        self.fair_average(cpu).is_full_with(self.rt_average(cpu))
    }
}

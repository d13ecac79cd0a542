// SPDX-License-Identifier: GPL-2.0-or-later
//! The questions of other rooms about the class of a task, and about the tasks of all classes on a
//! CPU.

use super::fair::ShownFair;
use crate::class::RunQueues;
use crate::id::TaskId;

/// The class of a task, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Ext,
    Fair,
    Rt,
}

impl RunQueues {
    #[inline]
    pub(super) fn rank(&self, task: TaskId) -> Rank {
        if self.is_rt(task) {
            Rank::Rt
        } else if self.has_ext() {
            Rank::Ext
        } else {
            Rank::Fair
        }
    }

    #[inline]
    pub(super) fn rank_running(&self, cpu: usize) -> Rank {
        if self.runs_rt(cpu) {
            Rank::Rt
        } else if self.has_ext() {
            Rank::Ext
        } else {
            Rank::Fair
        }
    }

    /// Returns the number of runnable tasks of all classes on `cpu`, the running one included.
    #[inline]
    pub fn nr(&self, cpu: usize) -> u32 {
        self.nr_fair(cpu) + self.nr_rt(cpu) + self.nr_ext(cpu)
    }

    /// Returns the running task of `cpu` if the balancer may move it: a task of the fair class.
    #[inline]
    pub(crate) fn fair_current(&self, cpu: usize) -> Option<TaskId> {
        self.cpus[cpu].current.filter(|_| self.rank_running(cpu) == Rank::Fair)
    }

    /// Returns the running task of `cpu` if it is of a class whose tasks the kernel moves while they
    /// run: any but a real-time one.
    #[inline]
    pub(crate) fn movable_current(&self, cpu: usize) -> Option<TaskId> {
        self.cpus[cpu].current.filter(|_| !self.runs_rt(cpu))
    }

    /// Returns whether the balancer may move `task`: a task of the fair class.
    #[inline]
    pub(crate) fn is_balanced(&self, task: TaskId) -> bool {
        self.rank(task) == Rank::Fair
    }

    /// Returns whether the classes together leave `cpu` no idle time, as their averages show.
    pub(crate) fn is_full(&self, cpu: usize) -> bool {
        self.fair_average(cpu).is_full_with(self.rt_average(cpu))
    }

    /// Returns the figures of the CPU's queue that the policy sees. One look at the queue finds all of
    /// them, because every change of a queue asks for them.
    #[inline(always)]
    pub(crate) fn shown(&mut self, cpu: usize) -> Shown {
        let has_rt = self.rt.is_some();
        let c = &self.cpus[cpu];
        let current = c.current.filter(|_| !(has_rt && c.rt.is_running()));
        let (nr_others, capacity) = (c.rt.nr() + self.nr_ext(cpu), c.capacity);
        let fair = self.fair.shown(cpu, capacity);
        Shown {
            nr_running: fair.nr + nr_others,
            curr_load: current.map_or(0, |task| self.task_load(task)),
            fair,
        }
    }
}

/// The figures of a CPU's queue that the policy sees, in the words of [`perch_policy::CpuState`].
pub(crate) struct Shown {
    pub nr_running: u32,
    pub curr_load: u32,
    pub fair: ShownFair,
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The questions of other rooms to the fair class about a CPU's queue or a task.

use super::eevdf;
use crate::class::RunQueues;
use crate::class::pelt::Average;
use crate::class::run_time::RunTime;
use crate::core::Life;
use crate::era::FairRules;
use crate::id::TaskId;

/// Questions about a CPU's queue.
impl RunQueues {
    /// Returns the number of fair tasks on `cpu`; the running one and delayed ones count too.
    #[inline]
    pub(crate) fn nr_fair(&self, cpu: usize) -> u32 {
        self.fair.cpu_queue(cpu).nr
    }

    /// Returns the number of delayed tasks among those.
    #[inline]
    pub(crate) fn nr_delayed(&self, cpu: usize) -> u32 {
        self.fair.cpu_queue(cpu).nr_delayed
    }

    /// Returns the number of fair tasks on `cpu` that are runnable, that is, not delayed.
    #[inline]
    pub(crate) fn nr_runnable_fair(&self, cpu: usize) -> u32 {
        let fair = self.fair.cpu_queue(cpu);
        fair.nr - fair.nr_delayed
    }

    /// Returns the sum of the weights of the entities in the CPU's own queue.
    pub(crate) fn queued_weight(&self, cpu: usize) -> u64 {
        self.fair.cpu_queue(cpu).weight
    }

    /// Returns the averages of the CPU's queue.
    pub(in crate::class) fn fair_average(&self, cpu: usize) -> &Average {
        &self.fair.cpu_queue(cpu).average
    }
}

/// Questions about a task.
impl RunQueues {
    /// Returns whether `task` counts as runnable on its CPU's queue.
    #[inline]
    pub(crate) fn on_queue(&self, task: TaskId) -> bool {
        let life = self.tasks[task].life;
        matches!(life, Life::Queued | Life::Running) || self.is_delayed(task)
    }

    /// Returns whether `task` is delayed: it sleeps, but EEVDF keeps it queued because it owes
    /// time.
    #[inline]
    pub(crate) fn is_delayed(&self, task: TaskId) -> bool {
        self.fair.entity_of(task).delayed
    }

    /// Returns the run time of `task`, which may be of any class.
    #[inline]
    pub(crate) fn run_time(&self, task: TaskId) -> &RunTime {
        &self.fair.entity_of(task).run
    }

    /// See [`RunQueues::run_time`].
    #[inline]
    pub(in crate::class) fn run_time_mut(&mut self, task: TaskId) -> &mut RunTime {
        &mut self.fair.entity_of_mut(task).run
    }

    /// Returns the averages of `task` as they were last updated.
    #[inline]
    pub(crate) fn task_average(&self, task: TaskId) -> &Average {
        &self.fair.entity_of(task).average
    }

    /// Returns the utilisation that `task` will probably have when it wakes up (util_est).
    #[inline]
    pub(crate) fn expected_util(&self, task: TaskId) -> u32 {
        self.fair.entity_of(task).est()
    }

    /// Returns the time since the run time of the waiting `task` was last accounted, in
    /// nanoseconds. For a task that has just been moved this may be all the time since the start of
    /// the run.
    #[inline]
    pub(crate) fn ran_since_ns(&self, task: TaskId) -> u64 {
        self.now.saturating_sub(self.run_time(task).start_ns)
    }

    /// EEVDF: returns the lag, in virtual nanoseconds, of a fair task that is queued or runs;
    /// otherwise 0.
    pub(crate) fn lag_now(&self, task: TaskId) -> i64 {
        let awake = matches!(self.tasks[task].life, Life::Queued | Life::Running);
        match self.rules.fair {
            FairRules::Eevdf { .. } if awake => {
                let queue = self.queue_of(task);
                let now = eevdf::virtual_time(self.fair.queue(queue), self.fair.current_in(queue));
                now - self.fair.entity_of(task).vruntime
            }
            _ => 0,
        }
    }
}

/// The load of a task.
impl RunQueues {
    /// Returns the part of the load of its CPU's own queue that belongs to `task` (`task_h_load`).
    #[inline(always)]
    pub(crate) fn task_load(&mut self, task: TaskId) -> u32 {
        let se = self.fair.entity_of(task);
        match self.tasks[task].group {
            None => {
                if self.rules.by_weight() {
                    se.weight
                } else {
                    se.average.load
                }
            }
            _ => self.fair.grouped_load(self.queue_of(task), task, self.now),
        }
    }
}

/// What the choice of a CPU is based on.
impl RunQueues {
    pub(crate) fn weight(&self, task: TaskId) -> u32 {
        self.fair.entity_of(task).weight
    }

    /// Returns the utilisation with which `task` counts where a CPU is chosen for it.
    #[inline]
    pub(crate) fn util(&self, task: TaskId) -> u32 {
        let se = self.fair.entity_of(task);
        se.average.util.max(se.est())
    }

    /// 3.4: returns by how much the load of `cpu` grows when the weight `here` comes to the group of
    /// `task` there, and the weight `all` to the group on the whole machine.
    pub(crate) fn effective_load(&self, task: TaskId, cpu: usize, here: i64, all: i64) -> i64 {
        self.fair.effective_load(self.tasks[task].group, cpu, here, all)
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The questions of other rooms to the fair class about a CPU's queue or a task.

use super::{NONE, eevdf};
use crate::class::pelt::Average;
use crate::class::run_time::RunTime;
use crate::core::{Life, Sched};
use crate::era::FairRules;

/// The figures of a CPU's fair tasks that the policy sees, in the words of
/// [`perch_policy::CpuState`].
pub(crate) struct Shown {
    pub nr_delayed: u32,
    pub load: u32,
    pub runnable: u32,
    pub util: u32,
}

/// Questions about a CPU's queue.
impl Sched<'_> {
    /// Returns the number of fair tasks on `cpu`; the running one and delayed ones count too.
    #[inline]
    pub(crate) fn nr_fair(&self, cpu: usize) -> u32 {
        self.fair.queues[cpu].nr
    }

    /// Returns the number of delayed tasks among those.
    #[inline]
    pub(crate) fn nr_delayed(&self, cpu: usize) -> u32 {
        self.fair.queues[cpu].nr_delayed
    }

    /// Returns the sum of the weights of the entities in the CPU's own queue.
    pub(crate) fn queued_weight(&self, cpu: usize) -> u64 {
        self.fair.queues[cpu].weight
    }

    /// Returns the averages of the CPU's queue.
    pub(in crate::class) fn fair_average(&self, cpu: usize) -> &Average {
        &self.fair.queues[cpu].average
    }

    /// Returns the figures of the CPU's fair tasks that the policy sees; `capacity` is the most
    /// that the tasks can use.
    #[inline(always)]
    pub(crate) fn shown(&self, cpu: usize, capacity: u32) -> Shown {
        let fair = &self.fair.queues[cpu];
        Shown {
            nr_delayed: fair.nr_delayed,
            load: match self.rules.groups.by_weight {
                true => fair.weight as u32,
                false => fair.average.load,
            },
            runnable: fair.average.runnable,
            util: fair.average.util.max(fair.est).min(capacity),
        }
    }
}

/// Questions about a task.
impl Sched<'_> {
    /// Returns whether `task` counts as runnable on its CPU's queue.
    #[inline]
    pub(crate) fn on_queue(&self, task: u32) -> bool {
        let life = self.tasks[task as usize].life;
        matches!(life, Life::Queued | Life::Running) || self.is_delayed(task)
    }

    /// Returns whether `task` is delayed: it sleeps, but EEVDF keeps it queued because it owes
    /// time.
    #[inline]
    pub(crate) fn is_delayed(&self, task: u32) -> bool {
        self.fair.entities[task as usize].delayed
    }

    /// Returns the run time of `task`, which may be of any class.
    #[inline]
    pub(crate) fn run_time(&self, task: u32) -> &RunTime {
        &self.fair.entities[task as usize].run
    }

    /// See [`Sched::run_time`].
    #[inline]
    pub(in crate::class) fn run_time_mut(&mut self, task: u32) -> &mut RunTime {
        &mut self.fair.entities[task as usize].run
    }

    /// Returns the averages of `task` as they were last updated.
    #[inline]
    pub(crate) fn task_average(&self, task: u32) -> &Average {
        &self.fair.entities[task as usize].average
    }

    /// Returns the utilisation that `task` will probably have when it wakes up (util_est).
    #[inline]
    pub(crate) fn expected_util(&self, task: u32) -> u32 {
        self.fair.entities[task as usize].est()
    }

    /// Returns the time since the run time of the waiting `task` was last accounted, in
    /// nanoseconds. For a task that has just been moved this may be all the time since the start of
    /// the run.
    #[inline]
    pub(crate) fn ran_since_ns(&self, task: u32) -> u64 {
        self.now.saturating_sub(self.run_time(task).start_ns)
    }

    /// EEVDF: returns the lag, in virtual nanoseconds, of a fair task that is queued or runs;
    /// otherwise 0.
    pub(crate) fn lag_now(&self, task: u32) -> i64 {
        let awake = matches!(self.tasks[task as usize].life, Life::Queued | Life::Running);
        match self.rules.fair {
            FairRules::Eevdf { .. } if awake => {
                let queue = self.queue_of(task);
                let now = eevdf::virtual_time(self.fair.queue(queue), self.fair.current_in(queue));
                now - self.fair.entities[task as usize].vruntime
            }
            _ => 0,
        }
    }
}

/// Questions about a task's place among the queues.
impl Sched<'_> {
    /// Returns the queue that `task` is in, or was in last.
    #[inline]
    pub(super) fn queue_of(&self, task: u32) -> u32 {
        let t = &self.tasks[task as usize];
        self.fair.queue_at(t.group, t.cpu)
    }

    /// Returns the queue that `task` enters on `cpu`, and makes it if no task of its group has been
    /// there yet.
    #[inline]
    pub(super) fn queue_on(&mut self, task: u32, cpu: usize) -> u32 {
        match self.tasks[task as usize].group {
            NONE => cpu as u32,
            group => self.fair.group_queue(group, cpu),
        }
    }

    /// Returns the lowest level of `task`: its queue, and its own entity. Each further level is the
    /// queue above, with the entity of the queue below.
    pub(super) fn level_of(&self, task: u32) -> (u32, u32) {
        (self.queue_of(task), task)
    }

    /// Climbs from two tasks to their entities in the first queue that has both
    /// (`find_matching_se`). Returns that queue and the two entities.
    #[inline]
    pub(super) fn matching(&self, one: u32, other: u32) -> (u32, u32, u32) {
        match self.fair.groups.any() {
            true => self.fair.meet(self.level_of(one), self.level_of(other)),
            false => (self.tasks[one as usize].cpu, one, other),
        }
    }
}

/// The load of a task.
impl Sched<'_> {
    /// Returns the part of the load of its CPU's own queue that belongs to `task` (`task_h_load`).
    #[inline(always)]
    pub(crate) fn task_load(&mut self, task: u32) -> u32 {
        let se = &self.fair.entities[task as usize];
        match self.tasks[task as usize].group {
            NONE => match self.rules.groups.by_weight {
                true => se.weight,
                false => se.average.load,
            },
            _ => self.fair.grouped_load(self.queue_of(task), task, self.now),
        }
    }
}

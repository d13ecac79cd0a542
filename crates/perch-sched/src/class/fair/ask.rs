// SPDX-License-Identifier: GPL-2.0-or-later
//! The questions of other rooms to the fair class about a CPU's queue or a task.

use super::eevdf;
use crate::class::pelt::Average;
use crate::class::run_time::RunTime;
use crate::core::{Life, Sched};
use crate::era::FairRules;
use crate::id::{EntityId, QueueId, TaskId};

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
        self.rq.fair.cpu_queue(cpu).nr
    }

    /// Returns the number of delayed tasks among those.
    #[inline]
    pub(crate) fn nr_delayed(&self, cpu: usize) -> u32 {
        self.rq.fair.cpu_queue(cpu).nr_delayed
    }

    /// Returns the sum of the weights of the entities in the CPU's own queue.
    pub(crate) fn queued_weight(&self, cpu: usize) -> u64 {
        self.rq.fair.cpu_queue(cpu).weight
    }

    /// Returns the averages of the CPU's queue.
    pub(in crate::class) fn fair_average(&self, cpu: usize) -> &Average {
        &self.rq.fair.cpu_queue(cpu).average
    }

    /// Returns the figures of the CPU's fair tasks that the policy sees; `capacity` is the most
    /// that the tasks can use.
    #[inline(always)]
    pub(crate) fn shown(&self, cpu: usize, capacity: u32) -> Shown {
        let fair = self.rq.fair.cpu_queue(cpu);
        Shown {
            nr_delayed: fair.nr_delayed,
            load: match self.rq.rules.groups.by_weight {
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
    pub(crate) fn on_queue(&self, task: TaskId) -> bool {
        let life = self.rq.tasks[task].life;
        matches!(life, Life::Queued | Life::Running) || self.is_delayed(task)
    }

    /// Returns whether `task` is delayed: it sleeps, but EEVDF keeps it queued because it owes
    /// time.
    #[inline]
    pub(crate) fn is_delayed(&self, task: TaskId) -> bool {
        self.rq.fair.entity_of(task).delayed
    }

    /// Returns the run time of `task`, which may be of any class.
    #[inline]
    pub(crate) fn run_time(&self, task: TaskId) -> &RunTime {
        &self.rq.fair.entity_of(task).run
    }

    /// See [`Sched::run_time`].
    #[inline]
    pub(in crate::class) fn run_time_mut(&mut self, task: TaskId) -> &mut RunTime {
        &mut self.rq.fair.entity_of_mut(task).run
    }

    /// Returns the averages of `task` as they were last updated.
    #[inline]
    pub(crate) fn task_average(&self, task: TaskId) -> &Average {
        &self.rq.fair.entity_of(task).average
    }

    /// Returns the utilisation that `task` will probably have when it wakes up (util_est).
    #[inline]
    pub(crate) fn expected_util(&self, task: TaskId) -> u32 {
        self.rq.fair.entity_of(task).est()
    }

    /// Returns the time since the run time of the waiting `task` was last accounted, in
    /// nanoseconds. For a task that has just been moved this may be all the time since the start of
    /// the run.
    #[inline]
    pub(crate) fn ran_since_ns(&self, task: TaskId) -> u64 {
        self.rq.now.saturating_sub(self.run_time(task).start_ns)
    }

    /// EEVDF: returns the lag, in virtual nanoseconds, of a fair task that is queued or runs;
    /// otherwise 0.
    pub(crate) fn lag_now(&self, task: TaskId) -> i64 {
        let awake = matches!(self.rq.tasks[task].life, Life::Queued | Life::Running);
        match self.rq.rules.fair {
            FairRules::Eevdf { .. } if awake => {
                let queue = self.queue_of(task);
                let now =
                    eevdf::virtual_time(self.rq.fair.queue(queue), self.rq.fair.current_in(queue));
                now - self.rq.fair.entity_of(task).vruntime
            }
            _ => 0,
        }
    }
}

/// Questions about a task's place among the queues.
impl Sched<'_> {
    /// Returns the queue that `task` is in, or was in last.
    #[inline]
    pub(super) fn queue_of(&self, task: TaskId) -> QueueId {
        let t = &self.rq.tasks[task];
        self.rq.fair.queue_at(t.group, t.cpu)
    }

    /// Returns the queue that `task` enters on `cpu`, and makes it if no task of its group has been
    /// there yet.
    #[inline]
    pub(super) fn queue_on(&mut self, task: TaskId, cpu: usize) -> QueueId {
        match self.rq.tasks[task].group {
            None => QueueId::of_cpu(cpu),
            Some(group) => self.rq.fair.group_queue(group, cpu),
        }
    }

    /// Returns the lowest level of `task`: its queue, and its own entity. Each further level is the
    /// queue above, with the entity of the queue below.
    pub(super) fn level_of(&self, task: TaskId) -> (QueueId, EntityId) {
        (self.queue_of(task), EntityId::of_task(task))
    }

    /// Climbs from two tasks to their entities in the first queue that has both
    /// (`find_matching_se`). Returns that queue and the two entities.
    #[inline]
    pub(super) fn matching(&self, one: TaskId, other: TaskId) -> (QueueId, EntityId, EntityId) {
        match self.rq.fair.groups.any() {
            true => self.rq.fair.meet(self.level_of(one), self.level_of(other)),
            false => (
                QueueId::of_cpu(self.rq.tasks[one].cpu),
                EntityId::of_task(one),
                EntityId::of_task(other),
            ),
        }
    }
}

/// The load of a task.
impl Sched<'_> {
    /// Returns the part of the load of its CPU's own queue that belongs to `task` (`task_h_load`).
    #[inline(always)]
    pub(crate) fn task_load(&mut self, task: TaskId) -> u32 {
        let se = self.rq.fair.entity_of(task);
        match self.rq.tasks[task].group {
            None => match self.rq.rules.groups.by_weight {
                true => se.weight,
                false => se.average.load,
            },
            _ => self
                .rq
                .fair
                .grouped_load(self.queue_of(task), task, self.rq.now),
        }
    }
}

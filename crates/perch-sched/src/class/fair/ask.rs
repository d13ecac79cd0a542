// SPDX-License-Identifier: GPL-2.0-or-later
//! What other rooms ask of the fair class about a CPU's queue or a task.

use super::eevdf;
use crate::class::pelt::Average;
use crate::class::run_time::RunTime;
use crate::core::{Life, Sched};
use crate::era::FairRules;
use crate::id::{EntityId, QueueId, TaskId};

/// What the policy sees of a CPU's fair tasks, in the words of [`perch_policy::CpuState`].
pub(crate) struct Shown {
    pub nr_delayed: u32,
    pub load: u32,
    pub runnable: u32,
    pub util: u32,
}

/// About a CPU's queue.
impl Sched<'_> {
    /// Fair tasks on a CPU, the running one and delayed ones included.
    #[inline]
    pub(crate) fn nr_fair(&self, cpu: usize) -> u32 {
        self.fair.cpu_queue(cpu).nr
    }

    /// Of those, the delayed ones.
    #[inline]
    pub(crate) fn nr_delayed(&self, cpu: usize) -> u32 {
        self.fair.cpu_queue(cpu).nr_delayed
    }

    /// Sum of the weights of what stands in a CPU's own queue.
    pub(crate) fn queued_weight(&self, cpu: usize) -> u64 {
        self.fair.cpu_queue(cpu).weight
    }

    /// The averages of a CPU's queue.
    pub(in crate::class) fn fair_average(&self, cpu: usize) -> &Average {
        &self.fair.cpu_queue(cpu).average
    }

    /// What the policy sees of a CPU's fair tasks; `capacity` is the most that they can use.
    #[inline(always)]
    pub(crate) fn shown(&self, cpu: usize, capacity: u32) -> Shown {
        let fair = self.fair.cpu_queue(cpu);
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

/// About a task.
impl Sched<'_> {
    /// Whether a task counts as runnable on its CPU's queue.
    #[inline]
    pub(crate) fn on_queue(&self, task: TaskId) -> bool {
        let life = self.tasks[task].life;
        matches!(life, Life::Queued | Life::Running) || self.is_delayed(task)
    }

    /// Whether a task sleeps and is still queued, as EEVDF leaves one that owes time.
    #[inline]
    pub(crate) fn is_delayed(&self, task: TaskId) -> bool {
        self.fair.entity_of(task).delayed
    }

    /// A task's run time, whatever its class is.
    #[inline]
    pub(crate) fn run_time(&self, task: TaskId) -> &RunTime {
        &self.fair.entity_of(task).run
    }

    /// See [`Sched::run_time`].
    #[inline]
    pub(in crate::class) fn run_time_mut(&mut self, task: TaskId) -> &mut RunTime {
        &mut self.fair.entity_of_mut(task).run
    }

    /// A task's averages as they stood when they were last brought up to date.
    #[inline]
    pub(crate) fn task_average(&self, task: TaskId) -> &Average {
        &self.fair.entity_of(task).average
    }

    /// What a task will probably use when it wakes (util_est).
    #[inline]
    pub(crate) fn expected_util(&self, task: TaskId) -> u32 {
        self.fair.entity_of(task).est()
    }

    /// How long ago the run time of a waiting task was last accounted, nanoseconds. A task that has
    /// just been moved has not run for ever.
    #[inline]
    pub(crate) fn ran_since_ns(&self, task: TaskId) -> u64 {
        self.now.saturating_sub(self.run_time(task).start_ns)
    }

    /// EEVDF: the lag of a fair task that is queued or runs, virtual nanoseconds; else 0.
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

/// Where a task stands.
impl Sched<'_> {
    /// The queue in which a task stands, or stood last.
    #[inline]
    pub(super) fn queue_of(&self, task: TaskId) -> QueueId {
        let t = &self.tasks[task];
        self.fair.queue_at(t.group, t.cpu)
    }

    /// The queue that a task enters on a CPU; made if it is the first of its group there.
    #[inline]
    pub(super) fn queue_on(&mut self, task: TaskId, cpu: usize) -> QueueId {
        match self.tasks[task].group {
            None => QueueId::of_cpu(cpu),
            Some(group) => self.fair.group_queue(group, cpu),
        }
    }

    /// The levels of a task: its queue and itself, then each queue above with the entity of the
    /// one below.
    pub(super) fn level_of(&self, task: TaskId) -> (QueueId, EntityId) {
        (self.queue_of(task), EntityId::of_task(task))
    }

    /// Climbs from two tasks to the entities that stand in the same queue (`find_matching_se`):
    /// that queue and the two.
    #[inline]
    pub(super) fn matching(&self, one: TaskId, other: TaskId) -> (QueueId, EntityId, EntityId) {
        match self.fair.groups.any() {
            true => self.fair.meet(self.level_of(one), self.level_of(other)),
            false => (
                QueueId::of_cpu(self.tasks[one].cpu),
                EntityId::of_task(one),
                EntityId::of_task(other),
            ),
        }
    }
}

/// What a task weighs.
impl Sched<'_> {
    /// The part of the load of its CPU's own queue that belongs to a task (`task_h_load`).
    #[inline(always)]
    pub(crate) fn task_load(&mut self, task: TaskId) -> u32 {
        let se = self.fair.entity_of(task);
        match self.tasks[task].group {
            None => match self.rules.groups.by_weight {
                true => se.weight,
                false => se.average.load,
            },
            _ => self.fair.grouped_load(self.queue_of(task), task, self.now),
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! What other rooms ask of the fair class about a CPU's queue or a task.

use super::{NONE, eevdf};
use crate::class::pelt::Average;
use crate::class::run_time::RunTime;
use crate::core::{Life, Sched};
use crate::era::FairRules;

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
        self.fair.queues[cpu].nr
    }

    /// Of those, the delayed ones.
    #[inline]
    pub(crate) fn nr_delayed(&self, cpu: usize) -> u32 {
        self.fair.queues[cpu].nr_delayed
    }

    /// Sum of the weights of what stands in a CPU's own queue.
    pub(crate) fn queued_weight(&self, cpu: usize) -> u64 {
        self.fair.queues[cpu].weight
    }

    /// The averages of a CPU's queue.
    pub(in crate::class) fn fair_average(&self, cpu: usize) -> &Average {
        &self.fair.queues[cpu].average
    }

    /// What the policy sees of a CPU's fair tasks; `capacity` is the most that they can use.
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

/// About a task.
impl Sched<'_> {
    /// Whether a task counts as runnable on its CPU's queue.
    #[inline]
    pub(crate) fn on_queue(&self, task: u32) -> bool {
        let life = self.tasks[task as usize].life;
        matches!(life, Life::Queued | Life::Running) || self.is_delayed(task)
    }

    /// Whether a task sleeps and is still queued, as EEVDF leaves one that owes time.
    #[inline]
    pub(crate) fn is_delayed(&self, task: u32) -> bool {
        self.fair.entities[task as usize].delayed
    }

    /// A task's run time, whatever its class is.
    #[inline]
    pub(crate) fn run_time(&self, task: u32) -> &RunTime {
        &self.fair.entities[task as usize].run
    }

    /// See [`Sched::run_time`].
    #[inline]
    pub(in crate::class) fn run_time_mut(&mut self, task: u32) -> &mut RunTime {
        &mut self.fair.entities[task as usize].run
    }

    /// A task's averages as they stood when they were last brought up to date.
    #[inline]
    pub(crate) fn task_average(&self, task: u32) -> &Average {
        &self.fair.entities[task as usize].average
    }

    /// What a task will probably use when it wakes (util_est).
    #[inline]
    pub(crate) fn expected_util(&self, task: u32) -> u32 {
        self.fair.entities[task as usize].est()
    }

    /// How long ago the run time of a waiting task was last accounted, nanoseconds. A task that has
    /// just been moved has not run for ever.
    #[inline]
    pub(crate) fn ran_since_ns(&self, task: u32) -> u64 {
        self.now.saturating_sub(self.run_time(task).start_ns)
    }

    /// EEVDF: the lag of a fair task that is queued or runs, virtual nanoseconds; else 0.
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

/// Where a task stands.
impl Sched<'_> {
    /// The queue in which a task stands, or stood last.
    #[inline]
    pub(super) fn queue_of(&self, task: u32) -> u32 {
        let t = &self.tasks[task as usize];
        self.fair.queue_at(t.group, t.cpu)
    }

    /// The queue that a task enters on a CPU; made if it is the first of its group there.
    #[inline]
    pub(super) fn queue_on(&mut self, task: u32, cpu: usize) -> u32 {
        match self.tasks[task as usize].group {
            NONE => cpu as u32,
            group => self.fair.group_queue(group, cpu),
        }
    }

    /// The levels of a task: its queue and itself, then each queue above with the entity of the
    /// one below.
    pub(super) fn level_of(&self, task: u32) -> (u32, u32) {
        (self.queue_of(task), task)
    }

    /// Climbs from two tasks to the entities that stand in the same queue (`find_matching_se`):
    /// that queue and the two.
    #[inline]
    pub(super) fn matching(&self, one: u32, other: u32) -> (u32, u32, u32) {
        match self.fair.groups.any() {
            true => self.fair.meet(self.level_of(one), self.level_of(other)),
            false => (self.tasks[one as usize].cpu, one, other),
        }
    }
}

/// What a task weighs.
impl Sched<'_> {
    /// The part of the load of its CPU's own queue that belongs to a task (`task_h_load`).
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

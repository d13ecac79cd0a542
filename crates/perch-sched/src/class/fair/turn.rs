// SPDX-License-Identifier: GPL-2.0-or-later
//! A task's turn on a CPU: when the task has to give way, and how its turn ends.

use perch_policy::Change;

use super::eevdf::Wakes;
use super::{cfs, eevdf};
use crate::class::RunQueues;
use crate::core::Life;
use crate::era::FairRules;
use crate::id::{EntityId, QueueId, TaskId};
impl RunQueues {
    /// Asks for a switch if `wakee`, which was just enqueued on `cpu`, preempts the running task.
    #[inline]
    pub(in crate::class) fn check_preempt_fair(&mut self, cpu: usize, wakee: TaskId) -> bool {
        let c = &mut self.cpus[cpu];
        let Some(current) = c.current else {
            c.need_resched = true;
            return false;
        };
        if c.need_resched {
            return false;
        }
        let (queue, runs, wakes) = self.matching(current, wakee);
        let (cur, new) = (self.fair.entity(runs), self.fair.entity(wakes));
        let preempts = match self.rules.fair {
            FairRules::Cfs { wakeup_granularity_ns, .. } => {
                cfs::preempts(cur.vruntime, new.vruntime, new.weight, wakeup_granularity_ns)
            }
            FairRules::Eevdf { .. } => {
                // A task that has never run was just forked.
                let fork = self.run_time(wakee).sum_ns == 0;
                self.preempts_eevdf(cpu, queue, (runs, wakes), fork)
            }
        };
        if preempts {
            self.cpus[cpu].need_resched = true;
            if let FairRules::Cfs { .. } = self.rules.fair {
                // The entity that preempts runs next, even if another is further behind.
                self.fair.set_next_buddy(queue, wakes);
                // In a full queue the preempted task goes on next, while its cache is warm.
                if runs == EntityId::of_task(current)
                    && self.fair.queue(self.queue_of(current)).entities >= 8
                {
                    self.fair.set_last_buddy(self.queue_of(current), current);
                }
            }
        }
        preempts
    }

    /// EEVDF: returns whether the second entity of a queue preempts the first, which runs. A forked
    /// task preempts nobody in 7.2, because an exec often follows
    /// and leaves nothing to share.
    fn preempts_eevdf(
        &mut self,
        cpu: usize,
        queue: QueueId,
        (runs, wakes): (EntityId, EntityId),
        fork: bool,
    ) -> bool {
        let again = self.rules.has(Change::PreemptsAgain);
        if again && (fork || self.fair.entity(wakes).delayed) {
            return false;
        }
        loop {
            let (fair, current) = (self.fair.queue(queue), self.fair.entity(runs));
            let is_delayed = |entity| self.fair.entity(entity).delayed;
            match eevdf::wakes(fair, current, wakes, again, is_delayed) {
                Wakes::Preempts => return true,
                Wakes::Stays => return false,
                Wakes::Leaves(entity) => self.drop_delayed(cpu, queue, entity),
            }
        }
    }

    /// Asks for a switch, at a tick, if the turn of the running task or of a group above it is
    /// over.
    pub(in crate::class) fn tick_fair(&mut self, cpu: usize, current: TaskId) {
        self.account_fair(cpu, current);
        let (mut queue, mut entity) = self.level_of(current);
        self.touch_levels(queue);
        self.touch_task(current);
        self.fair.tick_shares(queue);
        loop {
            if self.fair.queue(queue).entities > 1 && self.is_over(queue, entity) {
                self.cpus[cpu].need_resched = true;
            }
            match self.fair.above(queue) {
                Some(above) => (queue, entity) = above,
                None => return,
            }
        }
    }

    /// Returns whether, at a tick, the turn of the running entity of a queue is over.
    fn is_over(&self, queue: QueueId, entity: EntityId) -> bool {
        let (fair, se) = (self.fair.queue(queue), self.fair.entity(entity));
        match self.rules.fair {
            FairRules::Cfs { latency_ns, min_granularity_ns, bounded, .. } => {
                let mut ideal_ns = self.fair.slice_ns(queue, entity, false);
                if bounded {
                    ideal_ns = ideal_ns.min(latency_ns);
                }
                cfs::tick_preempts(fair, se, ideal_ns, min_granularity_ns)
            }
            FairRules::Eevdf { .. } => se.vruntime >= fair.protected_v,
        }
    }

    /// Puts the running task to sleep or ends it, as `life` says. Returns whether it left its queue.
    #[inline]
    pub(in crate::class) fn leave_fair(&mut self, cpu: usize, task: TaskId, life: Life) -> bool {
        if life == Life::Dead {
            self.end_fair(cpu, task);
            return true;
        }
        self.sleep_fair(cpu, task, life)
    }

    /// Puts the running task to sleep. Returns false if EEVDF keeps it queued.
    #[inline]
    fn sleep_fair(&mut self, cpu: usize, task: TaskId, life: Life) -> bool {
        let left = self.dequeue_sleeper(cpu, task);
        self.tasks[task].life = life;
        self.cpus[cpu].current = None;
        self.fair.put_levels(cpu, self.queue_of(task), task, !left);
        left
    }

    /// Ends the running task.
    fn end_fair(&mut self, cpu: usize, task: TaskId) {
        self.account_fair(cpu, task);
        let queue = self.queue_of(task);
        self.touch_levels(queue);
        self.touch_task(task);
        self.leave_queue(cpu, task, true);
        self.cpus[cpu].current = None;
        self.fair.put_levels(cpu, queue, task, false);
        self.tasks[task].life = Life::Dead;
        let average = self.fair.entity_of(task).average;
        self.fair.queue_mut(queue).average.detach(&average);
        if queue != QueueId::of_cpu(cpu) {
            self.fair.propagate(queue, -1, self.now);
        }
    }
}

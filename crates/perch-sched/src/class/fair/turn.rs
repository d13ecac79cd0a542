// SPDX-License-Identifier: GPL-2.0-or-later
//! A task's turn on a CPU: when the task has to give way, and how its turn ends.

use super::eevdf::Wakes;
use super::{cfs, eevdf};
use crate::core::{Life, Sched};
use crate::era::FairRules;
use crate::id::{EntityId, QueueId, TaskId};
use crate::observe::Observed;

impl Sched<'_> {
    /// Asks for a switch if `wakee`, which was just enqueued on `cpu`, preempts the running task.
    #[inline]
    pub(super) fn check_preempt_fair(&mut self, cpu: usize, wakee: TaskId) {
        let c = &mut self.rq.cpus[cpu];
        let Some(current) = c.current else {
            c.need_resched = true;
            return;
        };
        if c.need_resched {
            return;
        }
        let (queue, runs, wakes) = self.matching(current, wakee);
        let (cur, new) = (self.rq.fair.entity(runs), self.rq.fair.entity(wakes));
        let preempts = match self.rq.rules.fair {
            FairRules::Cfs {
                wakeup_granularity_ns,
                ..
            } => cfs::preempts(
                cur.vruntime,
                new.vruntime,
                new.weight,
                wakeup_granularity_ns,
            ),
            FairRules::Eevdf { .. } => {
                // A task that has never run was just forked.
                let fork = self.run_time(wakee).sum_ns == 0;
                self.preempts_eevdf(cpu, queue, (runs, wakes), fork)
            }
        };
        if preempts {
            self.rq.cpus[cpu].need_resched = true;
            self.happened(Observed::Preempted { cpu, wakee });
            if let FairRules::Cfs { .. } = self.rq.rules.fair {
                // The entity that preempts runs next, even if another is further behind.
                self.rq.fair.set_next_buddy(queue, wakes);
                // In a full queue the preempted task goes on next, while its cache is warm.
                if runs == EntityId::of_task(current)
                    && self.rq.fair.queue(self.queue_of(current)).entities >= 8
                {
                    self.rq.fair.set_last_buddy(self.queue_of(current), current);
                }
            }
        }
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
        let again = self.rq.rules.preempts_again;
        if again && (fork || self.rq.fair.entity(wakes).delayed) {
            return false;
        }
        loop {
            let (fair, current) = (self.rq.fair.queue(queue), self.rq.fair.entity(runs));
            let is_delayed = |entity| self.rq.fair.entity(entity).delayed;
            match eevdf::wakes(fair, current, wakes, again, is_delayed) {
                Wakes::Preempts => return true,
                Wakes::Stays => return false,
                Wakes::Leaves(entity) => self.drop_delayed(cpu, queue, entity),
            }
        }
    }

    /// Asks for a switch, at a tick, if the turn of the running task or of a group above it is
    /// over.
    pub(super) fn tick_fair(&mut self, cpu: usize, current: TaskId) {
        self.account_fair(cpu, current);
        let (mut queue, mut entity) = self.level_of(current);
        self.touch_levels(queue);
        self.touch_task(current);
        self.rq.fair.tick_shares(queue);
        self.publish(cpu);
        loop {
            if self.rq.fair.queue(queue).entities > 1 && self.is_over(queue, entity) {
                self.rq.cpus[cpu].need_resched = true;
            }
            match self.rq.fair.above(queue) {
                Some(above) => (queue, entity) = above,
                None => return,
            }
        }
    }

    /// Returns whether, at a tick, the turn of the running entity of a queue is over.
    fn is_over(&self, queue: QueueId, entity: EntityId) -> bool {
        let (fair, se) = (self.rq.fair.queue(queue), self.rq.fair.entity(entity));
        match self.rq.rules.fair {
            FairRules::Cfs {
                latency_ns,
                min_granularity_ns,
                bounded,
                ..
            } => {
                let mut ideal_ns = self.rq.fair.slice_ns(queue, entity, false);
                if bounded {
                    ideal_ns = ideal_ns.min(latency_ns);
                }
                cfs::tick_preempts(fair, se, ideal_ns, min_granularity_ns)
            }
            FairRules::Eevdf { .. } => se.vruntime >= fair.protected_v,
        }
    }

    /// Puts the running task to sleep.
    #[inline]
    pub(super) fn sleep_fair(&mut self, cpu: usize, task: TaskId, life: Life) {
        let left = self.dequeue_sleeper(cpu, task);
        self.leave_caches(cpu, task);
        self.rq.tasks[task].life = life;
        self.rq.cpus[cpu].current = None;
        self.rq
            .fair
            .put_levels(cpu, self.queue_of(task), task, !left);
        if self.caches.is_on() {
            self.stops_running(cpu, task);
            self.reserve(cpu, -1);
            if left {
                self.count_wish(cpu, task, -1);
            }
        }
    }

    /// Ends the running task.
    pub(super) fn end_fair(&mut self, cpu: usize, task: TaskId) {
        self.account_fair(cpu, task);
        let queue = self.queue_of(task);
        self.touch_levels(queue);
        self.touch_task(task);
        self.leave_queue(cpu, task, true);
        self.rq.cpus[cpu].current = None;
        self.rq.fair.put_levels(cpu, queue, task, false);
        if self.caches.is_on() {
            self.stops_running(cpu, task);
            self.reserve(cpu, -1);
            self.count_wish(cpu, task, -1);
            self.count_thread(task, -1);
        }
        self.rq.tasks[task].life = Life::Dead;
        let average = self.rq.fair.entity_of(task).average;
        self.rq.fair.queue_mut(queue).average.detach(&average);
        if queue != QueueId::of_cpu(cpu) {
            self.rq.fair.propagate(queue, -1, self.rq.now);
        }
    }
}

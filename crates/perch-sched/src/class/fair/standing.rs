// SPDX-License-Identifier: GPL-2.0-or-later
//! The entities in a queue of the fair class: how they enter and leave the timeline, which of them
//! is marked to run next, and their lag and slice.

use perch_policy::Change;

use super::entity::Entity;
use super::queue::Waiting;
use super::state::FairState;
use super::{cfs, eevdf};
use crate::era::FairRules;
use crate::id::{EntityId, QueueId, TaskId};

impl FairState {
    /// EEVDF: returns the mean of a queue.
    #[inline]
    pub(super) fn mean(&self, queue: QueueId) -> eevdf::Mean {
        eevdf::mean(self.queue(queue), self.current_in(queue))
    }

    /// Returns the entity that runs from a queue, for EEVDF's sums.
    #[inline]
    pub(super) fn current_in(&self, queue: QueueId) -> Option<&Entity> {
        match self.queue(queue).curr {
            EntityId::NONE => None,
            entity => Some(self.entity(entity)),
        }
    }

    /// Adds an entity to a queue's timeline and EEVDF's sums.
    #[inline(always)]
    pub(super) fn insert_waiting(&mut self, queue: QueueId, entity: EntityId) {
        let by_deadline = matches!(self.rules.fair, FairRules::Eevdf { .. });
        let (fair, se) = self.both_mut(queue, entity);
        fair.timeline.insert(Waiting {
            key: if by_deadline { se.deadline } else { se.vruntime },
            vruntime: se.vruntime,
            weight: se.weight,
            entity,
        });
        fair.waiting_weight += u64::from(se.weight);
        fair.weighted_v += i64::from(se.weight) * (se.vruntime - fair.min_vruntime);
    }

    /// Takes an entity out of a queue's timeline and EEVDF's sums.
    #[inline(always)]
    pub(super) fn remove_waiting(&mut self, queue: QueueId, entity: EntityId) {
        let fair = self.queue_mut(queue);
        let w = fair.timeline.remove(entity);
        fair.waiting_weight -= u64::from(w.weight);
        fair.weighted_v -= i64::from(w.weight) * (w.vruntime - fair.min_vruntime);
    }

    /// Returns the lag of an entity that leaves a queue, limited to what the era lets it keep.
    #[inline(always)]
    pub(super) fn lag(&self, queue: QueueId, entity: EntityId, slice_ns: u64) -> i64 {
        let current = self.current_in(queue);
        let limit_ns = self.rules.lag.ns(slice_ns, self.tick_ns);
        let (fair, se) = (self.queue(queue), self.entity(entity));
        eevdf::lag(fair, current, se, limit_ns)
    }

    /// EEVDF: writes down the lag with which an entity leaves a queue that it is still in
    /// (`update_entity_lag`). Returns whether its vruntime says something else now.
    pub(super) fn settle_lag(&mut self, queue: QueueId, entity: EntityId) -> bool {
        let FairRules::Eevdf { slice_ns } = self.rules.fair else {
            return false;
        };
        let current = self.current_in(queue);
        let limit_ns = self.rules.lag.ns(slice_ns, self.tick_ns);
        let (fair, se) = (self.queue(queue), self.entity(entity));
        let keeps_older = self.rules.has(Change::KeepsOlderLag);
        let lag = eevdf::settled_lag(fair, current, se, limit_ns, keeps_older);
        let now = eevdf::virtual_time(fair, current);
        let se = self.entity_mut(entity);
        se.vlag = lag;
        now - lag != se.vruntime
    }

    /// Makes a delayed entity, which never left its queue, runnable again. If the wait has paid
    /// what the entity owed, the entity starts even: it gets no credit for the wait. In 7.2 the
    /// entity is also placed anew if it would owe more than its limit, or than when it fell asleep.
    pub(super) fn requeue(&mut self, queue: QueueId, entity: EntityId) {
        let FairRules::Eevdf { slice_ns } = self.rules.fair else {
            return;
        };
        let paid = self.lag(queue, entity, slice_ns) > 0;
        let moved = self.settle_lag(queue, entity);
        self.entity_mut(entity).delayed = false;
        if paid || moved && self.rules.has(Change::KeepsOlderLag) {
            self.remove_waiting(queue, entity);
            let mean = self.mean(queue);
            eevdf::place(mean, self.entity_mut(entity), slice_ns, false);
            self.insert_waiting(queue, entity);
        }
    }

    /// Takes the running task off its CPU. The task waits again if `waits` says so, and each group
    /// above it waits again if the group is still queued.
    #[inline(always)]
    pub(super) fn put_levels(&mut self, cpu: usize, queue: QueueId, task: TaskId, waits: bool) {
        let (entity, at) = (EntityId::of_task(task), self.choices[cpu]);
        let fair = self.queue_mut(queue);
        (fair.curr, fair.put, fair.put_at) = (EntityId::NONE, entity, at);
        if waits {
            self.insert_waiting(queue, entity);
        }
        if self.above(queue).is_some() {
            self.put_above(queue, at);
        }
    }

    #[cold]
    fn put_above(&mut self, mut queue: QueueId, at: u64) {
        while let Some((parent, entity)) = self.above(queue) {
            let queued = self.entity(entity).queued;
            let fair = self.queue_mut(parent);
            (fair.curr, fair.put) = (EntityId::NONE, entity);
            if queued {
                fair.put_at = at;
                self.insert_waiting(parent, entity);
            }
            queue = parent;
        }
    }

    /// Makes the groups above a task that starts to run the running ones of their queues. A group
    /// that ran until the CPU's last pick goes on with its turn; any other begins a new one.
    #[cold]
    pub(super) fn set_above(&mut self, mut queue: QueueId, choices: u64, now_ns: u64) {
        let puts_all = !self.rules.has(Change::TurnsGoOn);
        while let Some((parent, entity)) = self.above(queue) {
            self.clear_buddies(parent, entity);
            let (fair, se) = self.both_mut(parent, entity);
            se.run.start_ns = now_ns;
            fair.curr = entity;
            if puts_all || (fair.put, fair.put_at) != (entity, choices) {
                se.picked_sum_ns = se.run.sum_ns;
                fair.protected_v = se.deadline;
            }
            queue = parent;
        }
    }

    /// Marks an entity, and all groups above it, as those that should run next. CFS always follows
    /// the mark; EEVDF follows it while the entity is owed time.
    pub(super) fn set_next_buddy(&mut self, queue: QueueId, entity: EntityId) {
        let (mut queue, mut entity) = (queue, entity);
        loop {
            self.queue_mut(queue).next_buddy = entity;
            let Some(above) = self.above(queue) else {
                return;
            };
            (queue, entity) = above;
        }
    }

    /// Takes the marks as a buddy away from an entity that runs or leaves its queue, and those that
    /// the groups above it got with it.
    #[inline]
    pub(super) fn clear_buddies(&mut self, queue: QueueId, entity: EntityId) {
        let fair = self.queue_mut(queue);
        if fair.next_buddy == entity || fair.last_buddy == entity {
            self.clear_buddies_up(queue, entity);
        }
    }

    #[cold]
    fn clear_buddies_up(&mut self, mut queue: QueueId, mut entity: EntityId) {
        let (mut next, mut last) = (true, true);
        while next || last {
            let fair = self.queue_mut(queue);
            next = next && fair.next_buddy == entity;
            last = last && fair.last_buddy == entity;
            if next {
                fair.next_buddy = EntityId::NONE;
            }
            if last {
                fair.last_buddy = EntityId::NONE;
            }
            let Some(above) = self.above(queue) else {
                return;
            };
            (queue, entity) = above;
        }
    }

    /// CFS: returns the slice of an entity in nanoseconds: its part of its queue's part of the
    /// period, and so on upwards (`sched_slice`). `joins` says that the entity is not queued yet.
    pub(super) fn slice_ns(&self, queue: QueueId, entity: EntityId, joins: bool) -> u64 {
        let FairRules::Cfs { latency_ns, min_granularity_ns, bounded, .. } = self.rules.fair else {
            return 0;
        };
        let (fair, se) = (self.queue(queue), self.entity(entity));
        let (nr, more) =
            (fair.entities + u32::from(joins), u64::from(joins) * u64::from(se.weight));
        let mut slice_ns = cfs::period_ns(latency_ns, min_granularity_ns, nr);
        slice_ns = slice_ns * u64::from(se.weight) / (fair.weight + more).max(1);
        let mut queue = queue;
        while let Some((parent, above)) = self.above(queue) {
            let (fair, se) = (self.queue(parent), self.entity(above));
            let more = u64::from(!se.queued) * u64::from(se.weight);
            slice_ns = slice_ns * u64::from(se.weight) / (fair.weight + more).max(1);
            queue = parent;
        }
        if bounded { slice_ns.max(min_granularity_ns) } else { slice_ns }
    }

    /// Marks a task, and all groups above it, as those that should go on as soon as they may.
    pub(super) fn set_last_buddy(&mut self, queue: QueueId, task: TaskId) {
        let (mut queue, mut entity) = (queue, EntityId::of_task(task));
        loop {
            self.queue_mut(queue).last_buddy = entity;
            let Some(above) = self.above(queue) else {
                return;
            };
            (queue, entity) = above;
        }
    }
}

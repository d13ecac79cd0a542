// SPDX-License-Identifier: GPL-2.0-or-later
//! The levels above a task: the changes in the queues of its groups when the task enters or leaves
//! a queue, runs or stops.

use perch_policy::Change;

use crate::class::fair::state::FairState;
use crate::class::fair::{cfs, eevdf};
use crate::id::{EntityId, QueueId};

use crate::era::FairRules;

impl FairState {
    /// Counts a task that has entered `queue`, there and in every queue above. On the way up the
    /// entity of each group that had no task is enqueued in the queue above it; once the climb
    /// meets an entity that is queued already, it enqueues no more of them.
    #[inline]
    pub(in crate::class::fair) fn climb_in(&mut self, queue: QueueId) {
        self.queue_mut(queue).nr += 1;
        if self.above(queue).is_some() {
            self.climb_groups(queue);
        }
    }

    #[cold]
    fn climb_groups(&mut self, mut queue: QueueId) {
        self.activate(queue);
        let mut arrives = true;
        while let Some((parent, entity)) = self.above(queue) {
            self.note_runnable(queue);
            self.update_shares(queue);
            if arrives && self.entity(entity).queued {
                arrives = false;
                if self.entity(entity).delayed {
                    self.requeue(parent, entity);
                }
            }
            if arrives {
                self.enqueue_group(parent, entity);
            }
            self.queue_mut(parent).nr += 1;
            queue = parent;
        }
    }

    /// Enqueues a group's entity in the queue above, as one that wakes up (`ENQUEUE_WAKEUP`).
    fn enqueue_group(&mut self, queue: QueueId, entity: EntityId) {
        match self.rules.fair {
            FairRules::Cfs { latency_ns, .. } => {
                let (fair, se) = self.both_mut(queue, entity);
                cfs::place_sleeper(fair, se, latency_ns);
            }
            FairRules::Eevdf { slice_ns } => {
                let mean = self.mean(queue);
                eevdf::place(mean, self.entity_mut(entity), slice_ns, false);
            }
        }
        let (fair, se) = self.both_mut(queue, entity);
        se.queued = true;
        fair.entities += 1;
        fair.weight += u64::from(se.weight);
        self.insert_waiting(queue, entity);
    }

    /// Takes a task that has left `queue` out of the number of tasks there and in every queue
    /// above; the queue has changed its own sums already. The entity of a queue that is empty now
    /// leaves the queue above. `delayed` says that the task slept already, `sleeps` that it will
    /// come back.
    #[inline]
    pub(in crate::class::fair) fn climb_out(
        &mut self,
        queue: QueueId,
        delayed: bool,
        sleeps: bool,
    ) {
        let fair = self.queue_mut(queue);
        fair.nr -= 1;
        fair.nr_delayed -= u32::from(delayed);
        if self.above(queue).is_some() {
            self.leave_groups(queue, delayed, sleeps);
        }
    }

    #[cold]
    fn leave_groups(&mut self, mut queue: QueueId, delayed: bool, sleeps: bool) {
        let mut leaves = true;
        while let Some((parent, entity)) = self.above(queue) {
            self.note_runnable(queue);
            if leaves && self.queue(queue).entities > 0 {
                leaves = false;
                if sleeps {
                    // The group should run next, because its remaining tasks share caches with the
                    // one that goes to sleep.
                    self.set_next_buddy(parent, entity);
                }
            }
            if leaves {
                leaves = self.dequeue_group(parent, entity);
            }
            self.update_shares(queue);
            let fair = self.queue_mut(parent);
            fair.nr -= 1;
            fair.nr_delayed -= u32::from(delayed);
            queue = parent;
        }
    }

    /// Counts, in a queue and in every queue above, a delayed task more (`by` is 1) when a task
    /// fell asleep and stays queued, or one less (`by` is -1) when it woke up again.
    #[inline]
    pub(in crate::class::fair) fn climb_delayed(&mut self, queue: QueueId, by: i32) {
        let mut queue = queue;
        loop {
            let fair = self.queue_mut(queue);
            fair.nr_delayed = fair.nr_delayed.wrapping_add_signed(by);
            let Some((parent, _)) = self.above(queue) else {
                return;
            };
            self.note_runnable(queue);
            queue = parent;
        }
    }

    /// Makes a delayed task that woke up runnable again, and with it every delayed group above it.
    #[inline]
    pub(in crate::class::fair) fn climb_awake(&mut self, queue: QueueId) {
        self.climb_delayed(queue, -1);
        let mut queue = queue;
        while let Some((parent, entity)) = self.above(queue) {
            if self.entity(entity).delayed {
                self.requeue(parent, entity);
            }
            queue = parent;
        }
    }

    /// Dequeues a group's entity from the queue above, as one that goes to sleep. Returns false if
    /// EEVDF keeps it queued until its debt is paid.
    fn dequeue_group(&mut self, queue: QueueId, entity: EntityId) -> bool {
        if let FairRules::Eevdf { .. } = self.rules.fair {
            self.settle_lag(queue, entity);
            let stays = self.rules.has(Change::DelayedDequeue) && self.entity(entity).vlag < 0;
            if stays && self.queue(queue).entities > 1 {
                self.entity_mut(entity).delayed = true;
                self.clear_buddies(queue, entity);
                return false;
            }
        }
        if self.queue(queue).curr != entity {
            self.remove_waiting(queue, entity);
        }
        self.drop_group(queue, entity);
        true
    }

    /// Updates the books of the queue above after a group's entity left its timeline.
    fn drop_group(&mut self, queue: QueueId, entity: EntityId) {
        self.clear_buddies(queue, entity);
        let (fair, se) = self.both_mut(queue, entity);
        (se.queued, se.delayed) = (false, false);
        fair.entities -= 1;
        fair.weight -= u64::from(se.weight);
        fair.put_at = 0;
    }

    /// Dequeues a delayed group whose turn has come, because it has paid what it owed. The entity
    /// of each group above that is empty without it leaves its queue too.
    pub(in crate::class::fair) fn leave_delayed_group(&mut self, queue: QueueId, entity: EntityId) {
        self.settle_lag(queue, entity);
        self.remove_waiting(queue, entity);
        self.drop_group(queue, entity);
        let (mut queue, mut leaves) = (queue, true);
        while let Some((parent, above)) = self.above(queue) {
            let se = self.entity(above);
            leaves = leaves && self.queue(queue).entities == 0 && se.queued && !se.delayed;
            leaves = leaves && self.dequeue_group(parent, above);
            self.update_shares(queue);
            queue = parent;
        }
    }
}

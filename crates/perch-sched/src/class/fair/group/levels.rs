// SPDX-License-Identifier: GPL-2.0-or-later
//! The levels above a task: how the queues of its groups change when the task comes, goes, runs or
//! stops.

use perch_policy::Host;

use crate::class::fair::state::FairState;
use crate::class::fair::{cfs, eevdf};
use crate::id::{EntityId, QueueId};

use crate::era::FairRules;

impl FairState {
    /// A task has entered a queue: the task is counted there and in every queue above. On the way up
    /// the entity of each group that had no task is put on the queue above it; the climb puts no more
    /// entities on queues once it meets one that is queued already.
    #[inline]
    pub(in crate::class::fair) fn climb_in(&mut self, host: &mut Host, queue: QueueId) {
        self.queue_mut(queue).nr += 1;
        if self.above(queue).is_some() {
            self.climb_groups(host, queue);
        }
    }

    #[cold]
    fn climb_groups(&mut self, host: &mut Host, mut queue: QueueId) {
        self.activate(queue);
        let mut arrives = true;
        while let Some((parent, entity)) = self.above(queue) {
            self.note_runnable(host, queue);
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

    /// Puts a group's entity on the queue above: as one that wakes up (`ENQUEUE_WAKEUP`).
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

    /// A task has left a queue, which has changed its own sums but not yet its number of tasks: the
    /// number goes down there and in every queue above. The entity of a queue that is empty now
    /// leaves the queue above. `delayed` says that the task slept already, `sleeps` that it will
    /// come back.
    #[inline]
    pub(in crate::class::fair) fn climb_out(
        &mut self,
        host: &mut Host,
        queue: QueueId,
        delayed: bool,
        sleeps: bool,
    ) {
        let fair = self.queue_mut(queue);
        fair.nr -= 1;
        fair.nr_delayed -= u32::from(delayed);
        if self.above(queue).is_some() {
            self.leave_groups(host, queue, delayed, sleeps);
        }
    }

    #[cold]
    fn leave_groups(&mut self, host: &mut Host, mut queue: QueueId, delayed: bool, sleeps: bool) {
        let mut leaves = true;
        while let Some((parent, entity)) = self.above(queue) {
            self.note_runnable(host, queue);
            if leaves && self.queue(queue).entities > 0 {
                leaves = false;
                if sleeps {
                    // Who shares its caches goes on.
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

    /// A task that stays queued fell asleep (1) or woke up again (-1): its queue and every queue above
    /// count one delayed task more or less.
    #[inline]
    pub(in crate::class::fair) fn climb_delayed(
        &mut self,
        host: &mut Host,
        queue: QueueId,
        by: i32,
    ) {
        let mut queue = queue;
        loop {
            let fair = self.queue_mut(queue);
            fair.nr_delayed = fair.nr_delayed.wrapping_add_signed(by);
            let Some((parent, _)) = self.above(queue) else {
                return;
            };
            self.note_runnable(host, queue);
            queue = parent;
        }
    }

    /// A delayed task woke up: it is runnable again, and so is every delayed group above it.
    #[inline]
    pub(in crate::class::fair) fn climb_awake(&mut self, host: &mut Host, queue: QueueId) {
        self.climb_delayed(host, queue, -1);
        let mut queue = queue;
        while let Some((parent, entity)) = self.above(queue) {
            if self.entity(entity).delayed {
                self.requeue(parent, entity);
            }
            queue = parent;
        }
    }

    /// Takes a group's entity off the queue above, as one that goes to sleep. Returns false when
    /// EEVDF keeps it queued until its debt is paid.
    fn dequeue_group(&mut self, queue: QueueId, entity: EntityId) -> bool {
        if let FairRules::Eevdf { slice_ns } = self.rules.fair {
            let lag = self.lag(queue, entity, slice_ns);
            let se = self.entity_mut(entity);
            se.vlag = lag;
            if lag < 0 && self.queue(queue).entities > 1 {
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

    /// The books of the queue above after a group's entity left its timeline.
    fn drop_group(&mut self, queue: QueueId, entity: EntityId) {
        self.clear_buddies(queue, entity);
        let (fair, se) = self.both_mut(queue, entity);
        se.queued = false;
        if std::mem::take(&mut se.delayed) {
            se.vlag = se.vlag.min(0);
        }
        fair.entities -= 1;
        fair.weight -= u64::from(se.weight);
        fair.put_at = 0;
    }

    /// The turn of a delayed group has come, so it has paid what it owed: its entity leaves the queue,
    /// and so does the entity of each group above that is empty without it.
    pub(in crate::class::fair) fn leave_delayed_group(&mut self, queue: QueueId, entity: EntityId) {
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

// SPDX-License-Identifier: GPL-2.0-or-later
//! The levels above a task: how the queues of its groups change when the task comes, goes, runs or
//! stops.

use super::NONE;
use crate::class::fair::entity::Entity;
use crate::class::fair::queue::Waiting;
use crate::class::fair::{cfs, eevdf};
use crate::core::Sched;
use crate::era::FairRules;

impl Sched<'_> {
    /// Brings the averages of a queue and of all above it up to date; to be called before anything
    /// in them changes.
    #[inline]
    pub(in crate::class::fair) fn touch_levels(&mut self, queue: u32) {
        let mut queue = queue;
        if self.above(queue).is_some() {
            queue = self.touch_above(queue);
        }
        self.touch_queue(queue as usize);
    }

    #[cold]
    fn touch_above(&mut self, mut queue: u32) -> u32 {
        while let Some((parent, entity)) = self.above(queue) {
            self.touch_group(queue, entity);
            queue = parent;
        }
        queue
    }

    /// EEVDF: the mean of a queue.
    #[inline]
    pub(crate) fn mean(&self, queue: u32) -> eevdf::Mean {
        eevdf::mean(self.queue(queue), self.current_in(queue))
    }

    /// The entity that runs from a queue, for EEVDF's sums.
    #[inline]
    pub(in crate::class::fair) fn current_in(&self, queue: u32) -> Option<&Entity> {
        match self.queue(queue).curr {
            NONE => None,
            entity => Some(self.entity(entity)),
        }
    }

    /// Adds an entity to a queue's timeline and EEVDF's sums.
    #[inline]
    pub(in crate::class::fair) fn insert_waiting(&mut self, queue: u32, entity: u32) {
        let by_deadline = matches!(self.rules.fair, FairRules::Eevdf { .. });
        let (fair, se) = self.both_mut(queue, entity);
        fair.timeline.insert(Waiting {
            key: if by_deadline {
                se.deadline
            } else {
                se.vruntime
            },
            vruntime: se.vruntime,
            weight: se.weight,
            entity,
        });
        fair.waiting_weight += u64::from(se.weight);
        fair.weighted_v += i64::from(se.weight) * (se.vruntime - fair.min_vruntime);
    }

    /// Takes an entity out of a queue's timeline and EEVDF's sums.
    #[inline]
    pub(in crate::class::fair) fn remove_waiting(&mut self, queue: u32, entity: u32) {
        let fair = self.queue_mut(queue);
        let w = fair.timeline.remove(entity);
        fair.waiting_weight -= u64::from(w.weight);
        fair.weighted_v -= i64::from(w.weight) * (w.vruntime - fair.min_vruntime);
    }

    /// A task has entered a queue: the task is counted there and in every queue above. On the way up
    /// the entity of each group that had no task is put on the queue above it; the climb puts no more
    /// entities on queues once it meets one that is queued already.
    #[inline]
    pub(in crate::class::fair) fn climb_in(&mut self, queue: u32) {
        self.queue_mut(queue).nr += 1;
        if self.above(queue).is_some() {
            self.climb_groups(queue);
        }
    }

    #[cold]
    fn climb_groups(&mut self, mut queue: u32) {
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

    /// Puts a group's entity on the queue above: as one that wakes up (`ENQUEUE_WAKEUP`).
    fn enqueue_group(&mut self, queue: u32, entity: u32) {
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
    pub(in crate::class::fair) fn climb_out(&mut self, queue: u32, delayed: bool, sleeps: bool) {
        let fair = self.queue_mut(queue);
        fair.nr -= 1;
        fair.nr_delayed -= u32::from(delayed);
        if self.above(queue).is_some() {
            self.leave_groups(queue, delayed, sleeps);
        }
    }

    #[cold]
    fn leave_groups(&mut self, mut queue: u32, delayed: bool, sleeps: bool) {
        let mut leaves = true;
        while let Some((parent, entity)) = self.above(queue) {
            self.note_runnable(queue);
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
    pub(in crate::class::fair) fn climb_delayed(&mut self, queue: u32, by: i32) {
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

    /// A delayed task woke up: it is runnable again, and so is every delayed group above it.
    pub(in crate::class::fair) fn climb_awake(&mut self, queue: u32) {
        self.climb_delayed(queue, -1);
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
    fn dequeue_group(&mut self, queue: u32, entity: u32) -> bool {
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
    fn drop_group(&mut self, queue: u32, entity: u32) {
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
    pub(in crate::class::fair) fn leave_delayed_group(&mut self, queue: u32, entity: u32) {
        self.touch_levels(self.below(entity).unwrap_or(queue));
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

    /// The lag of an entity that leaves a queue, within what it may keep.
    #[inline]
    pub(crate) fn lag(&self, queue: u32, entity: u32, slice_ns: u64) -> i64 {
        let current = self.current_in(queue);
        let limit_ns = self.rules.lag.ns(slice_ns, self.tick_ns);
        let (fair, se) = (self.queue(queue), self.entity(entity));
        eevdf::lag(fair, current, se, limit_ns)
    }

    /// A delayed entity, which never left its queue, is runnable again. If the wait has paid what the
    /// entity owed, the entity starts even: it gets no credit for the wait.
    pub(in crate::class::fair) fn requeue(&mut self, queue: u32, entity: u32) {
        let FairRules::Eevdf { slice_ns } = self.rules.fair else {
            return;
        };
        let lag = self.lag(queue, entity, slice_ns);
        self.entity_mut(entity).delayed = false;
        if lag > 0 {
            self.remove_waiting(queue, entity);
            let mean = self.mean(queue);
            let se = self.entity_mut(entity);
            se.vlag = 0;
            eevdf::place(mean, se, slice_ns, false);
            self.insert_waiting(queue, entity);
        }
    }

    /// The running task leaves its CPU. The task waits again if `waits` says so, and each group above
    /// it waits again if the group is still queued.
    #[inline(always)]
    pub(in crate::class::fair) fn put_levels(&mut self, queue: u32, task: u32, waits: bool) {
        let at = self.cpus[self.cpu_of(queue)].fair.choices;
        let fair = self.queue_mut(queue);
        (fair.curr, fair.put, fair.put_at) = (NONE, task, at);
        if waits {
            self.insert_waiting(queue, task);
        }
        if self.above(queue).is_some() {
            self.put_above(queue, at);
        }
    }

    #[cold]
    fn put_above(&mut self, mut queue: u32, at: u64) {
        while let Some((parent, entity)) = self.above(queue) {
            let queued = self.entity(entity).queued;
            let fair = self.queue_mut(parent);
            (fair.curr, fair.put, fair.put_at) = (NONE, entity, at);
            if queued {
                self.insert_waiting(parent, entity);
            }
            queue = parent;
        }
    }

    /// A task starts to run, and the groups above it run with it. A group that ran until the CPU's
    /// last choice goes on with its turn; any other begins a new one.
    #[cold]
    pub(in crate::class::fair) fn set_above(&mut self, mut queue: u32, choices: u64) {
        let now = self.now;
        let puts_all = self.rules.groups.turns_anew;
        while let Some((parent, entity)) = self.above(queue) {
            self.clear_buddies(parent, entity);
            let (fair, se) = self.both_mut(parent, entity);
            se.run.start_ns = now;
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
    pub(in crate::class::fair) fn set_next_buddy(&mut self, queue: u32, entity: u32) {
        let (mut queue, mut entity) = (queue, entity);
        loop {
            self.queue_mut(queue).next_buddy = entity;
            let Some(above) = self.above(queue) else {
                return;
            };
            (queue, entity) = above;
        }
    }

    /// Marks a task, and all groups above it, as those that should go on as soon as they may.
    pub(in crate::class::fair) fn set_last_buddy(&mut self, task: u32) {
        let (mut queue, mut entity) = self.level_of(task);
        loop {
            self.queue_mut(queue).last_buddy = entity;
            let Some(above) = self.above(queue) else {
                return;
            };
            (queue, entity) = above;
        }
    }

    /// An entity runs or leaves its queue: its marks as a buddy are taken away, and so are those that
    /// the groups above it got with it.
    #[inline]
    pub(in crate::class::fair) fn clear_buddies(&mut self, queue: u32, entity: u32) {
        let fair = self.queue_mut(queue);
        if fair.next_buddy == entity || fair.last_buddy == entity {
            self.clear_buddies_up(queue, entity);
        }
    }

    #[cold]
    fn clear_buddies_up(&mut self, mut queue: u32, mut entity: u32) {
        let (mut next, mut last) = (true, true);
        while next || last {
            let fair = self.queue_mut(queue);
            next = next && fair.next_buddy == entity;
            last = last && fair.last_buddy == entity;
            if next {
                fair.next_buddy = NONE;
            }
            if last {
                fair.last_buddy = NONE;
            }
            let Some(above) = self.above(queue) else {
                return;
            };
            (queue, entity) = above;
        }
    }

    /// CFS: what an entity gets of a period: its part of its queue's part of the period, and so on
    /// (`sched_slice`). `joins`: it is not queued yet.
    pub(crate) fn slice_ns(&self, queue: u32, entity: u32, joins: bool) -> u64 {
        let FairRules::Cfs {
            latency_ns,
            min_granularity_ns,
            bounded,
            ..
        } = self.rules.fair
        else {
            return 0;
        };
        let (fair, se) = (self.queue(queue), self.entity(entity));
        let (nr, more) = (
            fair.entities + u32::from(joins),
            u64::from(joins) * u64::from(se.weight),
        );
        let mut slice_ns = cfs::period_ns(latency_ns, min_granularity_ns, nr);
        slice_ns = slice_ns * u64::from(se.weight) / (fair.weight + more).max(1);
        let mut queue = queue;
        while let Some((parent, above)) = self.above(queue) {
            let (fair, se) = (self.queue(parent), self.entity(above));
            let more = u64::from(!se.queued) * u64::from(se.weight);
            slice_ns = slice_ns * u64::from(se.weight) / (fair.weight + more).max(1);
            queue = parent;
        }
        match bounded {
            true => slice_ns.max(min_granularity_ns),
            false => slice_ns,
        }
    }
}

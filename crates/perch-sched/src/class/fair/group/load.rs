// SPDX-License-Identifier: GPL-2.0-or-later
//! The load of groups: the averages of their queues and entities, the load of a task as its CPU's
//! own queue sees it, and the windows of 3.4.

use super::state::MIN_SHARES;
use crate::class::fair::state::FairState;
use crate::class::pelt::Activity;
use crate::id::{EntityId, QueueId, TaskGroupId, TaskId};

/// A moment on the clock of the run and on that of a CPU's averages.
#[derive(Clone, Copy, Debug)]
pub(in crate::class::fair) struct Moment {
    /// The moment, in nanoseconds.
    pub ns: u64,
    /// The same moment on the clock of the CPU's averages.
    pub pelt_ns: u64,
}

impl FairState {
    /// Updates the averages of a group's queue and of its entity.
    pub(in crate::class::fair) fn touch_group(
        &mut self,
        queue: QueueId,
        entity: EntityId,
        now: Moment,
    ) {
        if self.rules.by_weight() {
            return self.advance_window(queue, false, now.ns);
        }
        let parent = self.groups.place(queue).parent;
        let runs = self.queue(parent).curr == entity;
        let (fair, se) = self.both_mut(queue, entity);
        let runnable = fair.nr - fair.nr_delayed;
        let did =
            Activity { weight: fair.weight as u32, runnable, running: fair.curr != EntityId::NONE };
        let moved = fair.average.update(now.pelt_ns, did);
        let did =
            Activity { weight: if se.queued { se.weight } else { 0 }, runnable, running: runs };
        se.average.update(now.pelt_ns, did);
        if moved {
            self.contribute(queue, now.ns);
        }
    }

    /// 3.4: advances a queue's window. The queue's contribution to its group's load follows if it
    /// is off by more than an eighth, or in any case with `global`.
    fn advance_window(&mut self, queue: QueueId, global: bool, now_ns: u64) {
        let weight = self.queue(queue).weight;
        let place = self.groups.place_mut(queue);
        let due = place.window.advance(now_ns, weight);
        if due || global {
            let (old, load) = (place.contribution, place.window.average());
            if global || load.abs_diff(old) > old / 8 {
                place.contribution = load;
                let group = place.group;
                let sum = &mut self.groups.groups[group].load;
                *sum = *sum + load - old;
            }
        }
        self.groups.place_mut(queue).window.fold();
    }

    /// Updates, at a tick, the weights of the running task's groups, from the lowest upwards. 3.4
    /// does so once per window.
    pub(in crate::class::fair) fn tick_shares(&mut self, queue: QueueId) {
        let mut queue = queue;
        while let Some((parent, _)) = self.above(queue) {
            self.update_shares(queue);
            queue = parent;
        }
    }

    /// Updates the averages of all groups that have or had a task on `cpu`, and forgets the groups
    /// whose averages have decayed to nothing (`update_blocked_averages`, `update_shares`).
    pub(in crate::class::fair) fn touch_groups(&mut self, cpu: usize, now: Moment) {
        let mut active = std::mem::take(&mut self.groups.active[cpu]);
        active.retain(|&queue| {
            let Some((_, entity)) = self.above(queue) else {
                return false;
            };
            if self.rules.by_weight() {
                self.advance_window(queue, true, now.ns);
                self.update_shares(queue);
                let place = self.groups.place(queue);
                return place.contribution > 0 || self.queue(queue).entities > 0;
            }
            self.touch_group(queue, entity, now);
            let (fair, se) = (self.queue(queue), self.entity(entity));
            let left = fair.average.is_any() || se.average.is_any();
            left || fair.entities > 0 || self.groups.place(queue).contribution > 0
        });
        self.groups.active[cpu] = active;
    }

    /// Updates the entities and queues above a group's queue, after a task's averages came to that
    /// queue or left it. `runnable` is the decayed time for which the task was runnable, see
    /// [`Average::runnable_periods`](crate::class::pelt::Average::runnable_periods); it is negative
    /// when the task leaves. 3.4 needs no update, because its load is the weight that is queued.
    pub(in crate::class::fair) fn propagate(&mut self, queue: QueueId, runnable: i64, now_ns: u64) {
        if self.rules.by_weight() {
            return;
        }
        let mut queue = queue;
        while let Some((parent, entity)) = self.above(queue) {
            let fair = self.queue(queue);
            let (child, weight) = (fair.average, fair.weight);
            let (fair, se) = self.both_mut(parent, entity);
            let before = se.average;
            se.average.follow(&child, weight, se.weight, runnable);
            fair.average.detach(&before);
            fair.average.attach(&se.average);
            self.contribute(queue, now_ns);
            queue = parent;
        }
    }

    /// Returns the part of the load of a CPU's own queue that belongs to a group's queue. The model
    /// computes it once per tick (`update_cfs_rq_h_load`), and for 3.4 at each call, from the
    /// weights.
    fn h_load(&mut self, queue: QueueId, now_ns: u64) -> u64 {
        let by_weight = self.rules.by_weight();
        let Some((parent, entity)) = self.above(queue) else {
            let fair = self.queue(queue);
            return if by_weight { fair.weight } else { fair.average.load.into() };
        };
        let tick = now_ns / self.tick_ns;
        let [known, then] = self.groups.place(queue).h_load;
        if then == tick && !by_weight {
            return known;
        }
        let above = self.h_load(parent, now_ns);
        let (fair, se) = (self.queue(parent), self.entity(entity));
        let load = match by_weight {
            true if se.queued => above * u64::from(se.weight) / (fair.weight + 1),
            true => 0,
            false => above * u64::from(se.average.load) / (u64::from(fair.average.load) + 1),
        };
        self.groups.place_mut(queue).h_load = [load, tick];
        load
    }

    #[cold]
    pub(in crate::class::fair) fn grouped_load(
        &mut self,
        queue: QueueId,
        task: TaskId,
        now_ns: u64,
    ) -> u32 {
        let se = self.entity_of(task);
        if queue == QueueId::NONE {
            return se.average.load;
        }
        let (weight, load) = (u64::from(se.weight), u64::from(se.average.load));
        let above = self.h_load(queue, now_ns);
        let fair = self.queue(queue);
        if self.rules.by_weight() {
            (weight * above / (fair.weight + 1)) as u32
        } else {
            (load * above / (u64::from(fair.average.load) + 1)) as u32
        }
    }

    /// 3.4: returns by how much the load of a CPU grows when the weight `here` comes to a group
    /// there, and the weight `all` to the group on the whole machine (`effective_load`). In the
    /// root group this is `here`. In other groups it is less or more, because the group's shares
    /// are divided anew.
    pub(in crate::class::fair) fn effective_load(
        &self,
        group: Option<TaskGroupId>,
        cpu: usize,
        here: i64,
        all: i64,
    ) -> i64 {
        let (mut group, mut here, mut all) = (group, here, all);
        while let Some(number) = group {
            let g = &self.groups.groups[number];
            // On a CPU where the group has never run, none of its entities weighs anything.
            let (weight, known, own) = match self.groups.find(number, cpu) {
                None => (0, 0, MIN_SHARES),
                Some(queue) => {
                    let (_, entity) = self.above(queue).expect("the queue of a group");
                    let place = self.groups.place(queue);
                    let weight = self.queue(queue).weight as i64;
                    (weight, place.contribution as i64, self.entity(entity).weight)
                }
            };
            let total = g.load as i64 - known + weight + all;
            let shares = i64::from(g.shares);
            let weight = weight + here;
            let then = if total > 0 && weight < total { weight * shares / total } else { shares };
            here = then.max(MIN_SHARES.into()) - i64::from(own);
            (group, all) = (g.parent, 0);
        }
        here
    }

    /// Returns whether the policy was told that a group's queue has a runnable task; `None` for the
    /// queue of a CPU.
    pub(in crate::class::fair) fn says_runnable(&self, queue: QueueId) -> Option<bool> {
        self.above(queue).map(|_| self.groups.place(queue).runnable)
    }

    /// Notes for the policy whether a group has a runnable task on a CPU.
    pub(super) fn note_runnable(&mut self, queue: QueueId) {
        let fair = self.queue(queue);
        let any = fair.nr > fair.nr_delayed;
        let place = self.groups.place_mut(queue);
        if std::mem::replace(&mut place.runnable, any) != any {
            let (group, cpu) = (place.group, place.cpu);
            let id = self.groups.groups[group].id;
            self.groups.told.push((id, cpu, any));
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The load of groups: the averages of their queues and entities, the load of a task as its CPU's
//! own queue sees it, and the windows of 3.4.

use super::NONE;
use crate::class::pelt::Activity;
use crate::core::Sched;
use crate::core::Waker;
use perch_policy::Wake;

/// 3.4: what a queue weighed on average, over windows that fold (`update_cfs_load`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    /// Sum of weight times nanoseconds, and nanoseconds.
    load_ns: u64,
    period_ns: u64,
    /// When it was last looked at, and when the queue last weighed anything.
    stamp_ns: u64,
    last_ns: u64,
}

/// `sched_shares_window`.
pub(crate) const WINDOW_NS: u64 = 10_000_000;

impl Window {
    /// Adds the time since the last call, with what the queue weighed. Returns whether its
    /// contribution should be looked at again.
    fn advance(&mut self, now_ns: u64, weight: u64) -> bool {
        let mut delta_ns = now_ns - self.stamp_ns;
        // Empty for long: starts over.
        if self.stamp_ns > self.last_ns && now_ns - self.last_ns > 4 * WINDOW_NS {
            (self.load_ns, self.period_ns) = (0, 0);
            delta_ns = WINDOW_NS - 1;
        }
        self.stamp_ns = now_ns;
        self.period_ns += delta_ns;
        if weight > 0 {
            self.last_ns = now_ns;
            self.load_ns += delta_ns * weight;
        }
        self.period_ns > WINDOW_NS || self.period_ns == 0
    }

    fn average(&self) -> u64 {
        self.load_ns / (self.period_ns + 1)
    }

    fn fold(&mut self) {
        while self.period_ns > WINDOW_NS {
            self.period_ns /= 2;
            self.load_ns /= 2;
        }
    }
}

impl Sched<'_> {
    /// Brings the averages of a group's queue and of its entity up to date.
    pub(super) fn touch_group(&mut self, queue: u32, entity: u32) {
        if self.rules.groups.by_weight {
            return self.advance_window(queue, false);
        }
        let now = self.cpus[self.cpu_of(queue)].pelt.read(self.now);
        let parent = self.fair.groups.place(queue).parent;
        let runs = self.queue(parent).curr == entity;
        let (fair, se) = self.both_mut(queue, entity);
        let runnable = fair.nr - fair.nr_delayed;
        let did = Activity {
            weight: fair.weight as u32,
            runnable,
            running: fair.curr != NONE,
        };
        let moved = fair.average.update(now, did);
        let did = Activity {
            weight: if se.queued { se.weight } else { 0 },
            runnable,
            running: runs,
        };
        se.average.update(now, did);
        if moved {
            self.contribute(queue);
        }
    }

    /// 3.4: a queue's window goes on, and its contribution to its group's load follows if it is
    /// off by an eighth, or in any case (`global`).
    fn advance_window(&mut self, queue: u32, global: bool) {
        let (now, weight) = (self.now, self.queue(queue).weight);
        let place = self.fair.groups.place_mut(queue);
        let due = place.window.advance(now, weight);
        if due || global {
            let (old, load) = (place.contribution, place.window.average());
            if global || load.abs_diff(old) > old / 8 {
                place.contribution = load;
                let group = place.group as usize;
                let sum = &mut self.fair.groups.groups[group].load;
                *sum = *sum + load - old;
            }
        }
        self.fair.groups.place_mut(queue).window.fold();
    }

    /// At a tick: the weights of the running task's groups, bottom up. 3.4 looks at them once a
    /// window.
    pub(in crate::class::fair) fn tick_shares(&mut self, queue: u32) {
        let mut queue = queue;
        while let Some((parent, _)) = self.above(queue) {
            self.update_shares(queue);
            queue = parent;
        }
    }

    /// Whether the walk over a CPU's groups goes by what its running task has run so far (3.4).
    pub(crate) fn wants_accounts(&self) -> bool {
        self.rules.groups.by_weight && self.fair.groups.any()
    }

    /// A balancing CPU brings the averages of all groups that have or had something to do there up
    /// to date, and forgets those of which nothing is left (`update_blocked_averages`,
    /// `update_shares`). Then its own.
    pub(crate) fn touch_active(&mut self, cpu: usize) {
        if self.fair.groups.any() {
            self.touch_groups(cpu);
        }
        self.touch_queue(cpu);
    }

    fn touch_groups(&mut self, cpu: usize) {
        let mut active = std::mem::take(&mut self.fair.groups.active[cpu]);
        active.retain(|&queue| {
            let Some((_, entity)) = self.above(queue) else {
                return false;
            };
            if self.rules.groups.by_weight {
                self.advance_window(queue, true);
                self.update_shares(queue);
                let place = self.fair.groups.place(queue);
                return place.contribution > 0 || self.queue(queue).entities > 0;
            }
            self.touch_group(queue, entity);
            let (fair, se) = (self.queue(queue), self.entity(entity));
            let left = fair.average.is_any() || se.average.is_any();
            left || fair.entities > 0 || self.fair.groups.place(queue).contribution > 0
        });
        self.fair.groups.active[cpu] = active;
    }

    /// A task's averages came to a group's queue (`runnable` of them: how much of its load, as a
    /// sum of periods) or left it (less than 0): entities and queues above follow.
    /// 3.4's load is the weight that is queued, which nobody has to be told of.
    pub(in crate::class::fair) fn propagate(&mut self, queue: u32, runnable: i64) {
        if self.rules.groups.by_weight {
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
            self.contribute(queue);
            queue = parent;
        }
    }

    /// The part of the load of a CPU's own queue that belongs to a group's queue. The model works it
    /// out once a tick (`update_cfs_rq_h_load`), and for 3.4 each time, by weights.
    fn h_load(&mut self, queue: u32) -> u64 {
        let by_weight = self.rules.groups.by_weight;
        let Some((parent, entity)) = self.above(queue) else {
            let fair = self.queue(queue);
            return match by_weight {
                true => fair.weight,
                false => fair.average.load.into(),
            };
        };
        let tick = self.now / self.tick_ns;
        let [known, then] = self.fair.groups.place(queue).h_load;
        if then == tick && !by_weight {
            return known;
        }
        let above = self.h_load(parent);
        let (fair, se) = (self.queue(parent), self.entity(entity));
        let load = match by_weight {
            true if se.queued => above * u64::from(se.weight) / (fair.weight + 1),
            true => 0,
            false => above * u64::from(se.average.load) / (u64::from(fair.average.load) + 1),
        };
        self.fair.groups.place_mut(queue).h_load = [load, tick];
        load
    }

    /// The part of the load of its CPU's own queue that belongs to a task (`task_h_load`).
    #[inline(always)]
    pub(crate) fn task_load(&mut self, task: u32) -> u32 {
        let se = &self.fair.entities[task as usize];
        match self.tasks[task as usize].group {
            NONE => match self.rules.groups.by_weight {
                true => se.weight,
                false => se.average.load,
            },
            _ => self.grouped_load(task),
        }
    }

    #[cold]
    fn grouped_load(&mut self, task: u32) -> u32 {
        let queue = self.queue_of(task);
        let se = &self.fair.entities[task as usize];
        if queue == NONE {
            return se.average.load;
        }
        let (weight, load) = (u64::from(se.weight), u64::from(se.average.load));
        let above = self.h_load(queue);
        let fair = self.queue(queue);
        match self.rules.groups.by_weight {
            true => (weight * above / (fair.weight + 1)) as u32,
            false => (load * above / (u64::from(fair.average.load) + 1)) as u32,
        }
    }

    /// 3.4: by how much the load of a CPU grows when `here` comes to a task's group there, and
    /// `all` to the group on the whole machine (`effective_load`): nothing but `here` in the root
    /// group, and less or more than that in others, whose shares are divided anew.
    fn effective_load(&self, task: u32, cpu: usize, here: i64, all: i64) -> i64 {
        let (mut group, mut here, mut all) = (self.tasks[task as usize].group, here, all);
        while group != NONE {
            let g = &self.fair.groups.groups[group as usize];
            // Where the group has never run nothing weighs anything.
            let (weight, known, own) = match self.fair.groups.find(group, cpu) {
                None => (0, 0, super::MIN_SHARES),
                Some(queue) => {
                    let (_, entity) = self.above(queue).expect("the queue of a group");
                    let place = self.fair.groups.place(queue);
                    let weight = self.queue(queue).weight as i64;
                    (
                        weight,
                        place.contribution as i64,
                        self.entity(entity).weight,
                    )
                }
            };
            let total = g.load as i64 - known + weight + all;
            let shares = i64::from(g.shares);
            let weight = weight + here;
            let then = match total > 0 && weight < total {
                true => weight * shares / total,
                false => shares,
            };
            here = then.max(super::MIN_SHARES.into()) - i64::from(own);
            (group, all) = (g.parent, 0);
        }
        here
    }

    /// 3.4: what the queues of a wake-up would weigh with the wakee on the waker's CPU, and without
    /// the waker, as the policy compares them. Returns by how much the waker's CPU would be heavier.
    #[cold]
    pub(in crate::class::fair) fn predict_weights(
        &mut self,
        task: u32,
        wake: &Wake,
        waker: Waker,
    ) -> u32 {
        let (this, prev) = (wake.this_cpu, wake.prev_cpu);
        let weight = i64::from(self.fair.entities[task as usize].weight);
        let shift = self.effective_load(task, prev, 0, weight);
        self.tasks[task as usize].state.load_shift = shift as i32;
        let heavier = self.effective_load(task, this, weight, weight);
        let leaves = match waker {
            Waker::Task(waker) if wake.sync && waker != task => {
                let weight = i64::from(self.fair.entities[waker as usize].weight);
                let shift = self.effective_load(waker, prev, 0, -weight);
                self.tasks[waker as usize].state.load_shift = shift as i32;
                -self.effective_load(waker, this, -weight, -weight)
            }
            _ => 0,
        };
        self.host.cpu_mut(this).curr_load = leaves.max(0) as u32;
        heavier.max(0) as u32
    }

    /// Whether the policy was told that a group's queue has something runnable; `None` for the queue
    /// of a CPU.
    pub(in crate::class::fair) fn says_runnable(&self, queue: u32) -> Option<bool> {
        self.above(queue)
            .map(|_| self.fair.groups.place(queue).runnable)
    }

    /// Lets the policy know whether a group has something runnable on a CPU.
    pub(super) fn note_runnable(&mut self, queue: u32) {
        let fair = self.queue(queue);
        let any = fair.nr > fair.nr_delayed;
        let place = self.fair.groups.place_mut(queue);
        if std::mem::replace(&mut place.runnable, any) != any {
            let (group, cpu) = (place.group as usize, place.cpu as usize);
            let id = self.fair.groups.groups[group].id;
            self.host.set_queued(id, cpu, any);
        }
    }
}

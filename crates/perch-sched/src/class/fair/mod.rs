// SPDX-License-Identifier: GPL-2.0-or-later
//! The fair class: what CFS and EEVDF have in common, and which of them answers.

use perch_policy::{GroupId, Mode};

mod answers;
mod ask;
mod cfs;
mod check;
mod eevdf;
mod entity;
mod group;
mod pick;
mod queue;
mod select;
mod waiting;

use super::pelt::Activity;
use crate::core::{Life, NewGroup, Sched};
use crate::era::FairRules;
use crate::hardware::Symbol;
use entity::Entity;
pub use group::NONE;
use group::TaskGroups;
use queue::FairQueue;

pub(crate) use answers::FairClass;
pub(crate) use group::of_task;

/// util_est ignores changes smaller than about 1 % of a CPU.
const EST_MARGIN: u32 = 10;

/// What the fair class knows: its queues, what stands in them, and the task groups.
pub(crate) struct FairState {
    /// The CPUs' queues, then those of groups on CPUs.
    queues: Vec<FairQueue>,
    /// What stands in queues: the tasks (of a real-time one only the run time counts), then groups.
    entities: Vec<Entity>,
    /// Times that any task was queued or picked.
    turns: u64,
    groups: TaskGroups,
    /// 5.5: by CPU, what idle scans of the wakers there cost on average, nanoseconds.
    scan_cost_ns: Vec<u64>,
}

impl FairState {
    /// Empty queues of `cpus` CPUs. `weights` has the weight of each task, `groups` the task groups,
    /// and `ids` those groups as the policy knows them.
    pub fn new(
        weights: impl Iterator<Item = u32>,
        groups: &[NewGroup],
        ids: &[GroupId],
        cpus: usize,
    ) -> FairState {
        let entities: Vec<Entity> = weights.map(Entity::of_task).collect();
        FairState {
            queues: (0..cpus).map(|_| FairQueue::default()).collect(),
            scan_cost_ns: vec![0; cpus],
            turns: 0,
            groups: TaskGroups::new(groups, ids, entities.len(), cpus),
            entities,
        }
    }
}

/// The fair class's part of a CPU.
#[derive(Debug, Default)]
pub(crate) struct FairCpu {
    /// How often the CPU chose a task of this class.
    choices: u64,
}

impl Sched<'_> {
    /// Brings a queue's averages up to date; to be called before anything in it changes.
    pub(super) fn touch_queue(&mut self, cpu: usize) {
        let (c, fair) = (&mut self.cpus[cpu], &mut self.fair.queues[cpu]);
        let now = c.pelt.read(self.now);
        if !fair.average.is_due(now) {
            return;
        }
        let did = Activity {
            weight: fair.weight as u32,
            runnable: fair.nr - fair.nr_delayed,
            running: fair.curr != NONE,
        };
        fair.average.update(now, did);
    }

    /// Brings a task's averages up to date; to be called before its life changes.
    fn touch_task(&mut self, task: u32) {
        let t = &self.tasks[task as usize];
        let now = self.cpus[t.cpu as usize].pelt.read(self.now);
        let running = t.life == Life::Running;
        let awake = running || t.life == Life::Queued;
        let se = &mut self.fair.entities[task as usize];
        if !se.average.is_due(now) {
            return;
        }
        let did = Activity {
            weight: if awake || se.delayed { se.weight } else { 0 },
            runnable: (awake && !se.delayed).into(),
            running,
        };
        se.average.update(now, did);
    }

    /// Accounts the running task's time, to it and to its groups.
    #[inline]
    fn account_fair(&mut self, cpu: usize, task: u32) {
        if self.tasks[task as usize].group == NONE {
            self.update_level(cpu, cpu as u32, task);
        } else {
            self.update_levels(cpu, task);
        }
    }

    #[cold]
    fn update_levels(&mut self, cpu: usize, task: u32) {
        let (mut queue, mut entity) = self.level_of(task);
        while self.update_level(cpu, queue, entity)
            && let Some(above) = self.above(queue)
        {
            (queue, entity) = above;
        }
    }

    /// Accounts the time of who runs from a queue. Returns whether there was any.
    #[inline(always)]
    fn update_level(&mut self, cpu: usize, queue: u32, entity: u32) -> bool {
        let (now, rules) = (self.now, self.rules.fair);
        let (fair, se) = self.both_mut(queue, entity);
        let delta = se.run.account(now);
        if delta == 0 {
            return false;
        }
        se.vruntime += cfs::virtual_ns(delta, se.weight);
        match rules {
            FairRules::Cfs { .. } => cfs::update_floor(fair, Some(se.vruntime)),
            FairRules::Eevdf { slice_ns } => {
                eevdf::update_floor(fair, Some(se));
                if eevdf::renew_deadline(se, slice_ns) && fair.entities > 1 {
                    self.cpus[cpu].need_resched = true;
                }
            }
        }
        true
    }

    /// Puts a task on a queue. `moved`: the balancer brings it, and in CFS it keeps its place
    /// relative to the queue's floor.
    #[inline(always)]
    fn enqueue_fair(&mut self, cpu: usize, task: u32, moved: bool) {
        let queue = self.queue_on(task, cpu);
        self.touch_levels(queue);
        let rules = self.rules.fair;
        let now = self.cpus[cpu].pelt.read(self.now);
        let (fair, se) = self.both_mut(queue, task);
        assert!(!se.queued, "task {task} is enqueued twice");
        let joins = !se.attached;
        if se.attached {
            // It slept here: its share of the queue's averages decayed with them.
            se.average.update(now, Activity::NONE);
        } else {
            se.average.align(&fair.average);
            fair.average.attach(&se.average);
            se.attached = true;
        }
        let new = std::mem::take(&mut se.new);
        match rules {
            FairRules::Cfs { latency_ns, .. } => {
                if std::mem::take(&mut se.relative) {
                    se.vruntime += fair.min_vruntime;
                }
                if new && !moved {
                    let slice_ns = self.slice_ns(queue, task, true);
                    let (fair, se) = self.both_mut(queue, task);
                    cfs::place_new(fair, se, slice_ns);
                } else if !moved {
                    cfs::place_sleeper(fair, se, latency_ns);
                }
            }
            FairRules::Eevdf { slice_ns } => {
                let mean = self.mean(queue);
                eevdf::place(mean, self.entity_mut(task), slice_ns, new);
            }
        }
        self.fair.turns += 1;
        let t = &mut self.tasks[task as usize];
        t.cpu = cpu as u32;
        t.life = Life::Queued;
        let se = &mut self.fair.entities[task as usize];
        se.turn = self.fair.turns;
        se.queued = true;
        let (weight, est) = (se.weight, se.est());
        self.fair.queues[cpu].est += est;
        let fair = self.queue_mut(queue);
        fair.entities += 1;
        fair.weight += u64::from(weight);
        self.insert_waiting(queue, task);
        if joins && queue != cpu as u32 {
            let average = &self.fair.entities[task as usize].average;
            let periods = average.runnable_periods(weight);
            self.propagate(queue, periods);
        }
        self.climb_in(queue);
        if self.nr(cpu) == 2 {
            self.set_overload(self.acting, Symbol::EnqueueTaskFair, true);
        }
        if self.caches.mode() == Mode::Upstream {
            self.count_wish(cpu, task, 1);
        }
        self.host.set_idle(cpu, false);
        self.publish(cpu);
    }

    /// Takes a task off its queue because it sleeps. Returns false when EEVDF keeps it queued
    /// until its debt is paid.
    fn dequeue_sleeper(&mut self, cpu: usize, task: u32) -> bool {
        self.account_fair(cpu, task);
        let queue = self.queue_of(task);
        self.touch_levels(queue);
        self.touch_task(task);
        self.update_estimate(task);
        if let FairRules::Eevdf { slice_ns } = self.rules.fair {
            let lag = self.lag(queue, task, slice_ns);
            let se = &mut self.fair.entities[task as usize];
            se.vlag = lag;
            if lag < 0 && self.queue(queue).entities > 1 {
                let se = &mut self.fair.entities[task as usize];
                se.delayed = true;
                let est = se.est();
                self.climb_delayed(queue, 1);
                let fair = &mut self.fair.queues[cpu];
                fair.est = fair.est.saturating_sub(est);
                return false;
            }
        }
        self.leave_queue(cpu, task, true);
        true
    }

    /// The books of a task's queue and of those above after the task left it (its averages stay:
    /// it may come back). `sleeps`: by itself.
    fn leave_queue(&mut self, cpu: usize, task: u32, sleeps: bool) {
        let queue = self.queue_of(task);
        self.clear_buddies(queue, task);
        let (fair, se) = self.both_mut(queue, task);
        assert!(se.queued, "task {task} leaves a queue that it is not on");
        fair.entities -= 1;
        fair.weight -= u64::from(se.weight);
        se.queued = false;
        let delayed = std::mem::take(&mut se.delayed);
        if delayed {
            // What it owed is paid: the wait counts as served, credit is not gathered.
            se.vlag = se.vlag.min(0);
        } else {
            let est = se.est();
            let fair = &mut self.fair.queues[cpu];
            fair.est = fair.est.saturating_sub(est);
        }
        self.climb_out(queue, delayed, sleeps);
    }

    /// util_est at a dequeue: up at once, down by a quarter of the way.
    fn update_estimate(&mut self, task: u32) {
        let cpu = self.tasks[task as usize].cpu as usize;
        let se = &mut self.fair.entities[task as usize];
        // The queue holds the old estimate until the task leaves it.
        let old = se.est();
        let util = se.average.util;
        // A CPU that is too small tells nothing of what the task would have used.
        let told = !self.rules.est_within_capacity || util <= self.host.topology().capacity(cpu);
        se.est_enqueued = util;
        if se.est_average < util {
            se.est_average = util;
        } else if told && se.est_average - util > EST_MARGIN {
            se.est_average -= (se.est_average - util) / 4;
        }
        let fair = &mut self.fair.queues[cpu];
        fair.est = fair.est.saturating_sub(old) + self.fair.entities[task as usize].est();
    }

    /// Takes a sleeping task's averages and vruntime away from the CPU it leaves.
    fn leave_cpu(&mut self, task: u32) {
        let cpu = self.tasks[task as usize].cpu as usize;
        let queue = self.queue_of(task);
        self.touch_levels(queue);
        let now = self.cpus[cpu].pelt.read(self.now);
        let moved_is_cold = self.rules.balance.moved_is_cold;
        let cfs = matches!(self.rules.fair, FairRules::Cfs { .. });
        let (fair, se) = self.both_mut(queue, task);
        let leaves = std::mem::take(&mut se.attached);
        if leaves {
            se.average.update(now, Activity::NONE);
            fair.average.detach(&se.average);
        }
        // Its old CPU's cache is of no use any more: a task that migrated is not hot, and the
        // next pass may take it on. This is what tears apart pairs that a wake-up has stacked.
        if moved_is_cold {
            se.run.start_ns = 0;
        }
        if cfs {
            se.vruntime -= fair.min_vruntime;
            se.relative = true;
        }
        if leaves && queue != cpu as u32 {
            self.propagate(queue, -1);
        }
        self.publish(cpu);
    }

    /// Whether a task just queued should take the CPU from the running one.
    #[inline]
    fn check_preempt_fair(&mut self, cpu: usize, wakee: u32) {
        let c = &mut self.cpus[cpu];
        let Some(current) = c.current else {
            c.need_resched = true;
            return;
        };
        if c.need_resched {
            return;
        }
        let (queue, runs, wakes) = self.matching(current, wakee);
        let (cur, new) = (self.entity(runs), self.entity(wakes));
        let preempts = match self.rules.fair {
            FairRules::Cfs {
                wakeup_granularity_ns,
                ..
            } => cfs::preempts(
                cur.vruntime,
                new.vruntime,
                new.weight,
                wakeup_granularity_ns,
            ),
            FairRules::Eevdf { .. } => eevdf::pick(self.queue(queue), Some(cur)) == Some(wakes),
        };
        if preempts {
            self.cpus[cpu].need_resched = true;
            self.counts.preemptions += 1;
            // CFS: what preempts is what runs next, whoever else is behind.
            if let FairRules::Cfs { .. } = self.rules.fair {
                self.set_next_buddy(queue, wakes);
            }
            // With a full queue the preempted task goes on next, while its cache is warm.
            if runs == current && self.queue(self.queue_of(current)).entities >= 8 {
                self.set_last_buddy(current);
            }
        }
    }

    /// At a tick: whether the running task should give way.
    fn tick_fair(&mut self, cpu: usize, current: u32) {
        self.account_fair(cpu, current);
        let (mut queue, mut entity) = self.level_of(current);
        self.touch_levels(queue);
        self.touch_task(current);
        self.tick_shares(queue);
        self.publish(cpu);
        loop {
            if self.queue(queue).entities > 1 && self.is_over(queue, entity) {
                self.cpus[cpu].need_resched = true;
            }
            match self.above(queue) {
                Some(above) => (queue, entity) = above,
                None => return,
            }
        }
    }

    /// At a tick: whether who runs from a queue has had its turn.
    fn is_over(&self, queue: u32, entity: u32) -> bool {
        let (fair, se) = (self.queue(queue), self.entity(entity));
        match self.rules.fair {
            FairRules::Cfs {
                latency_ns,
                min_granularity_ns,
                bounded,
                ..
            } => {
                let mut ideal_ns = self.slice_ns(queue, entity, false);
                if bounded {
                    ideal_ns = ideal_ns.min(latency_ns);
                }
                cfs::tick_preempts(fair, se, ideal_ns, min_granularity_ns)
            }
            FairRules::Eevdf { .. } => se.vruntime >= fair.protected_v,
        }
    }

    /// Wakes a delayed sleeper, which never left its queue and needs no place.
    pub(crate) fn requeue_delayed(&mut self, cpu: usize, task: u32) {
        let queue = self.queue_of(task);
        self.touch_levels(queue);
        self.touch_task(task);
        self.requeue(queue, task);
        self.tasks[task as usize].life = Life::Queued;
        let est = self.fair.entities[task as usize].est();
        self.fair.queues[cpu].est += est;
        // Its groups may be delayed with it: they are runnable again too.
        self.climb_awake(queue);
        self.publish(cpu);
    }

    /// The running task sleeps.
    #[inline]
    fn sleep_fair(&mut self, cpu: usize, task: u32, life: Life) {
        let left = self.dequeue_sleeper(cpu, task);
        self.leave_caches(cpu, task);
        self.tasks[task as usize].life = life;
        self.cpus[cpu].current = None;
        self.put_levels(self.queue_of(task), task, !left);
        if self.caches.is_on() {
            self.stops_running(cpu, task);
            self.reserve(cpu, -1);
            if left {
                self.count_wish(cpu, task, -1);
            }
        }
    }

    /// The running task ends.
    fn end_fair(&mut self, cpu: usize, task: u32) {
        self.account_fair(cpu, task);
        let queue = self.queue_of(task);
        self.touch_levels(queue);
        self.touch_task(task);
        self.leave_queue(cpu, task, true);
        self.cpus[cpu].current = None;
        self.put_levels(queue, task, false);
        if self.caches.is_on() {
            self.stops_running(cpu, task);
            self.reserve(cpu, -1);
            self.count_wish(cpu, task, -1);
            self.count_thread(task, -1);
        }
        self.tasks[task as usize].life = Life::Dead;
        let average = self.fair.entities[task as usize].average;
        self.queue_mut(queue).average.detach(&average);
        if queue != cpu as u32 {
            self.propagate(queue, -1);
        }
    }
}

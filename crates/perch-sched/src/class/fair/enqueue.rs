// SPDX-License-Identifier: GPL-2.0-or-later
//! How a task enters a queue of the fair class, and leaves it.

use perch_policy::Change;

use super::{cfs, eevdf};
use crate::class::RunQueues;
use crate::class::effect::Effect;
use crate::class::pelt::{Activity, Average};
use crate::core::Life;
use crate::era::FairRules;
use crate::hardware::Symbol;
use crate::id::{EntityId, QueueId, TaskId};

/// util_est ignores changes smaller than about 1 % of a CPU.
const EST_MARGIN: u32 = 10;

impl RunQueues {
    /// Enqueues `task` on `cpu`. `moved` says that the balancer brings it; in CFS it then keeps its
    /// place relative to the queue's floor.
    #[inline(always)]
    pub(in crate::class) fn enqueue_fair(&mut self, cpu: usize, task: TaskId, moved: bool) {
        let (queue, entity) = (self.queue_on(task, cpu), EntityId::of_task(task));
        self.touch_levels(queue);
        let rules = self.rules.fair;
        let now = self.cpus[cpu].pelt.read(self.now);
        let (fair, se) = self.fair.both_mut(queue, entity);
        assert!(!se.queued, "task {task} is enqueued twice");
        let joins = !se.attached;
        if se.attached {
            // The task slept here: its part of the queue's averages decayed with them.
            se.age(now, Activity::NONE);
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
                    let slice_ns = self.fair.slice_ns(queue, entity, true);
                    let (fair, se) = self.fair.both_mut(queue, entity);
                    cfs::place_new(fair, se, slice_ns);
                } else if !moved {
                    cfs::place_sleeper(fair, se, latency_ns);
                }
            }
            FairRules::Eevdf { slice_ns } => {
                let mean = self.fair.mean(queue);
                eevdf::place(mean, self.fair.entity_mut(entity), slice_ns, new);
            }
        }
        self.fair.turns += 1;
        let t = &mut self.tasks[task];
        t.cpu = cpu;
        t.life = Life::Queued;
        let se = &mut self.fair.entities[entity];
        se.turn = self.fair.turns;
        se.queued = true;
        let (weight, est) = (se.weight, se.est());
        self.fair.cpu_queue_mut(cpu).est += est;
        let fair = self.fair.queue_mut(queue);
        fair.entities += 1;
        fair.weight += u64::from(weight);
        self.fair.insert_waiting(queue, entity);
        if joins && queue != QueueId::of_cpu(cpu) {
            let average = &self.fair.entity_of(task).average;
            let periods = average.runnable_periods(weight);
            self.fair.propagate(queue, periods, self.now);
        }
        self.fair.climb_in(queue);
        if self.nr(cpu) == 2 {
            self.effects.push(Effect::Crowded(Symbol::EnqueueTaskFair));
        }
    }

    /// Dequeues `task`, which goes to sleep. Returns false if EEVDF keeps it queued until its debt
    /// is paid.
    pub(super) fn dequeue_sleeper(&mut self, cpu: usize, task: TaskId) -> bool {
        self.account_fair(cpu, task);
        let queue = self.queue_of(task);
        self.touch_levels(queue);
        self.touch_task(task);
        self.update_estimate(task);
        if let FairRules::Eevdf { .. } = self.rules.fair {
            self.fair.settle_lag(queue, EntityId::of_task(task));
            let lag = self.fair.entity_of(task).vlag;
            let stays = self.rules.has(Change::DelayedDequeue) && lag < 0;
            if stays && self.fair.queue(queue).entities > 1 {
                self.delay(cpu, task);
                return false;
            }
        }
        self.leave_queue(cpu, task, true);
        true
    }

    /// Notes that a queued task sleeps and only pays what it owes (`set_delayed`).
    pub(super) fn delay(&mut self, cpu: usize, task: TaskId) {
        let queue = self.queue_of(task);
        self.fair.clear_buddies(queue, EntityId::of_task(task));
        let se = self.fair.entity_of_mut(task);
        se.delayed = true;
        let est = se.est();
        self.fair.climb_delayed(queue, 1);
        let fair = self.fair.cpu_queue_mut(cpu);
        fair.est = fair.est.saturating_sub(est);
    }

    /// Updates the books of the task's queue, and of those above it, after the task left the queue.
    /// Its averages stay there, because the task may come back. `sleeps` says that the task leaves
    /// by itself.
    pub(super) fn leave_queue(&mut self, cpu: usize, task: TaskId, sleeps: bool) {
        let (queue, entity) = self.level_of(task);
        self.fair.clear_buddies(queue, entity);
        let (fair, se) = self.fair.both_mut(queue, entity);
        assert!(se.queued, "task {task} leaves a queue that it is not on");
        fair.entities -= 1;
        fair.weight -= u64::from(se.weight);
        se.queued = false;
        let delayed = std::mem::take(&mut se.delayed);
        if !delayed {
            let est = se.est();
            let fair = self.fair.cpu_queue_mut(cpu);
            fair.est = fair.est.saturating_sub(est);
        }
        self.fair.climb_out(queue, delayed, sleeps);
    }

    /// Updates util_est at a dequeue: a rise takes effect at once, and a fall by a quarter of the
    /// difference. A task that sleeps again before a period of PELT has ended keeps its estimate.
    fn update_estimate(&mut self, task: TaskId) {
        let cpu = self.tasks[task].cpu;
        let (queue, entity) = (QueueId::of_cpu(cpu), EntityId::of_task(task));
        let (fair, se) = self.fair.both_mut(queue, entity);
        if se.est_stays {
            return;
        }
        se.est_stays = true;
        // The queue counts the old estimate until the task leaves it.
        let old = se.est();
        let util = se.average.util;
        // The utilisation on a CPU that is too small does not show what the task would have used
        // elsewhere, and neither does that of a task that waited while it wanted to run.
        let waited = self.rules.has(Change::EstGotAll) && util + EST_MARGIN < se.average.runnable;
        let small = !self.rules.has(Change::EstBeyondCapacity) && util > self.cpus[cpu].capacity;
        let told = !waited && !small;
        se.est_enqueued = util;
        if se.est_average < util {
            se.est_average = util;
        } else if told && se.est_average - util > EST_MARGIN {
            se.est_average -= (se.est_average - util) / 4;
        }
        fair.est = fair.est.saturating_sub(old) + se.est();
    }

    /// Takes a task's averages and vruntime away from the CPU that it leaves. `asleep` says that a
    /// wake-up takes it, without the lock of the queue.
    pub(in crate::class) fn leave_cpu(&mut self, task: TaskId, asleep: bool) {
        let cpu = self.tasks[task].cpu;
        let (queue, entity) = self.level_of(task);
        // Of a group's queue the model takes the task at once.
        let own = asleep && queue == QueueId::of_cpu(cpu) && !self.rules.by_weight();
        if !own {
            self.touch_levels(queue);
        }
        let now = self.cpus[cpu].pelt.read(self.now);
        let moved_is_cold = self.rules.has(Change::MovedIsCold);
        let cfs = matches!(self.rules.fair, FairRules::Cfs { .. });
        let (fair, se) = self.fair.both_mut(queue, entity);
        let leaves = std::mem::take(&mut se.attached);
        if leaves && own {
            se.average.reach(&fair.average);
            fair.has_lost = true;
            for (all, one) in fair.removed.iter_mut().zip(se.average.averages()) {
                *all += one;
            }
            se.average.update(now, Activity::NONE);
        } else if leaves {
            se.average.update(now, Activity::NONE);
            fair.average.detach(&se.average);
        }
        // The cache of the task's old CPU is of no use any more: a task that migrated is not hot,
        // and the next pass may take it on. This separates pairs of tasks that a wake-up has put on
        // one CPU.
        if moved_is_cold {
            se.run.start_ns = 0;
        }
        if cfs {
            se.vruntime -= fair.min_vruntime;
            se.relative = true;
        }
        if leaves && queue != QueueId::of_cpu(cpu) {
            self.fair.propagate(queue, -1, self.now);
        }
    }

    /// Wakes a delayed task, which never left its queue and needs no new place there.
    pub(crate) fn requeue_delayed(&mut self, cpu: usize, task: TaskId) {
        let queue = self.queue_of(task);
        self.touch_levels(queue);
        self.touch_task(task);
        self.fair.requeue(queue, EntityId::of_task(task));
        self.tasks[task].life = Life::Queued;
        let est = self.fair.entity_of(task).est();
        self.fair.cpu_queue_mut(cpu).est += est;
        // The groups above the task may be delayed with it; they are runnable again too.
        self.fair.climb_awake(queue);
    }

    /// Prepares a task for its first wake-up, which will send it to `cpu`.
    pub(in crate::class) fn born_fair(&mut self, task: TaskId, cpu: usize) {
        self.touch_queue(cpu);
        let queue = self.fair.queue_at(self.tasks[task].group, cpu);
        let own = match queue {
            QueueId::NONE => Average::default(),
            queue => self.fair.queue(queue).average,
        };
        // A new task counts as always runnable. It probably uses as much for its weight as the
        // others of its queue do, and at most half of the capacity that they leave
        // (`post_init_entity_util_avg`).
        let capacity = self.cpus[cpu].capacity;
        let spare = capacity.saturating_sub(own.util) / 2;
        let scale = if self.rules.has(Change::BornByQueue) { 1 } else { 1024 };
        let now = self.now;
        let se = self.fair.entity_of_mut(task);
        let alike = u64::from(own.util) * u64::from(se.weight) * scale / (u64::from(own.load) + 1);
        let util = match own.util {
            0 => spare,
            _ => alike.min(spare.into()) as u32,
        };
        se.average = Average::starting(now, se.weight, util);
        se.vruntime = 0;
    }
}

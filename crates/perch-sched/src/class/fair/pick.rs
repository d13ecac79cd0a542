// SPDX-License-Identifier: GPL-2.0-or-later
//! The fair class's part of a switch: the next task to run, and the state that changes with it.

use super::entity::Owner;
use super::{cfs, eevdf};
use crate::class::table::Yield;
use crate::core::{Life, Sched};
use crate::era::FairRules;
use crate::id::{EntityId, QueueId, TaskId};

impl Sched<'_> {
    /// Takes the next task off the timeline to run it, and its groups off theirs. A delayed task
    /// whose turn comes has paid what it owed, and is dequeued. With `skip`, CFS may pass over the
    /// task that has just run, at every level, for one that is not much further behind.
    pub(super) fn pick_skipping(&mut self, cpu: usize, skip: bool) -> Option<TaskId> {
        let mut queue = QueueId::of_cpu(cpu);
        loop {
            let fair = self.rq.fair.queue(queue);
            let skip = skip.then_some(fair.put);
            let entity = match self.rq.rules.fair {
                FairRules::Cfs {
                    wakeup_granularity_ns,
                    ..
                } => cfs::pick(fair, skip, wakeup_granularity_ns),
                FairRules::Eevdf { .. } => eevdf::pick(fair, None, true),
            }?;
            if self.rq.fair.entity(entity).delayed {
                self.drop_delayed(cpu, queue, entity);
                queue = QueueId::of_cpu(cpu);
                continue;
            }
            let picked = match self.rq.fair.owner(entity) {
                Owner::Task(task) => task,
                Owner::Group(below) => {
                    queue = below;
                    continue;
                }
            };
            self.touch_levels(queue);
            self.touch_task(picked);
            self.rq.fair.remove_waiting(queue, entity);
            while let Some((parent, entity)) = self.rq.fair.above(queue) {
                self.rq.fair.remove_waiting(parent, entity);
                queue = parent;
            }
            return Some(picked);
        }
    }

    /// Dequeues a delayed task or group whose turn has come, because it has paid what it owed.
    pub(super) fn drop_delayed(&mut self, cpu: usize, queue: QueueId, entity: EntityId) {
        let picked = match self.rq.fair.owner(entity) {
            Owner::Task(task) => task,
            Owner::Group(below) => {
                self.touch_levels(below);
                return self.rq.fair.leave_delayed_group(queue, entity);
            }
        };
        self.touch_levels(queue);
        self.touch_task(picked);
        self.rq.fair.settle_lag(queue, entity);
        self.rq.fair.remove_waiting(queue, entity);
        self.count_wish(cpu, picked, -1);
        self.leave_queue(cpu, picked, true);
        self.publish(cpu);
    }

    /// Makes the picked task the running one.
    #[inline(always)]
    pub(super) fn set_next_fair(&mut self, cpu: usize, task: TaskId) {
        self.rq.tasks[task].life = Life::Running;
        let se = &mut self.rq.fair.entities[EntityId::of_task(task)];
        assert!(se.queued, "task {task} runs and is on no queue");
        se.run.start_ns = self.rq.now;
        se.picked_sum_ns = se.run.sum_ns;
        if !self.rq.rules.balance.newest_first {
            self.rq.fair.turns += 1;
            se.turn = self.rq.fair.turns;
        }
        let deadline = se.deadline;
        let c = &mut self.rq.cpus[cpu];
        assert!(c.current.is_none(), "cpu {cpu} runs two tasks");
        c.current = Some(task);
        c.need_resched = false;
        let choices = self.rq.fair.choices[cpu];
        self.rq.fair.choices[cpu] += 1;
        let (queue, entity) = self.level_of(task);
        let fair = self.rq.fair.queue_mut(queue);
        fair.curr = entity;
        // All slices are equal: the entity is protected until its deadline.
        fair.protected_v = deadline;
        self.rq.fair.clear_buddies(queue, entity);
        if self.rq.fair.above(queue).is_some() {
            self.rq.fair.set_above(queue, choices, self.rq.now);
        }
        if self.caches.is_on() {
            self.starts_running(task);
        }
        self.publish(cpu);
    }

    /// Puts the running task back among those that wait.
    #[inline]
    pub(super) fn put_fair(&mut self, cpu: usize, task: TaskId) {
        self.account_fair(cpu, task);
        let queue = self.queue_of(task);
        self.touch_levels(queue);
        self.touch_task(task);
        self.rq.cpus[cpu].current = None;
        if self.caches.is_on() {
            self.stops_running(cpu, task);
        }
        let t = &mut self.rq.tasks[task];
        t.life = Life::Queued;
        t.waits_since_ns = self.rq.now;
        self.rq.fair.put_levels(cpu, queue, task, true);
    }

    /// Makes the running task yield. The task keeps a CPU that it has for itself, and also one on
    /// which it is so far behind the others that they may not go first.
    pub(super) fn yield_fair(&mut self, cpu: usize, task: TaskId) -> Yield {
        if self.rq.fair.cpu_queue(cpu).nr == 1 {
            return Yield::Keeps;
        }
        let picked_sum_ns = self.rq.fair.entity_of(task).picked_sum_ns;
        let next = self.pick_after_yield(cpu, task);
        if next != task {
            return Yield::To(next);
        }
        self.set_next_fair(cpu, task);
        self.note_misfit(cpu);
        self.rq.fair.entity_of_mut(task).picked_sum_ns = picked_sum_ns;
        Yield::Keeps
    }

    /// Makes the running task, which is not alone on its CPU, yield. Returns the task that runs
    /// next, which may be the same one.
    ///
    /// In CFS (`yield_task_fair` of 5.6) the task loses its marks as a buddy, and is passed over
    /// once. In EEVDF of 7.2 a task that is owed time forfeits the rest of its slice; otherwise the
    /// queue only picks again. In 6.12 the task's deadline moves on by a slice.
    fn pick_after_yield(&mut self, cpu: usize, task: TaskId) -> TaskId {
        self.account_fair(cpu, task);
        let (queue, entity) = self.level_of(task);
        let (rules, forfeits) = (self.rq.rules.fair, self.rq.rules.yield_forfeits);
        let (fair, se) = self.rq.fair.both_mut(queue, entity);
        let skip = match rules {
            FairRules::Cfs { .. } => {
                self.rq.fair.clear_buddies(queue, entity);
                true
            }
            FairRules::Eevdf { slice_ns } if !forfeits => {
                se.deadline += cfs::virtual_ns(slice_ns, se.weight);
                false
            }
            FairRules::Eevdf { slice_ns } => {
                if eevdf::eligible(fair, Some(se), se.vruntime) {
                    se.vruntime = se.deadline;
                    eevdf::renew_deadline(se, slice_ns);
                }
                false
            }
        };
        self.put_fair(cpu, task);
        let next = self.pick_skipping(cpu, skip);
        next.expect("a queue with a runnable task in it")
    }
}

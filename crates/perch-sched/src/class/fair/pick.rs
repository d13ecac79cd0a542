// SPDX-License-Identifier: GPL-2.0-or-later
//! The fair class's part of a switch: the next task to run, and the state that changes with it.

use perch_policy::Change;

use super::entity::Owner;
use super::{cfs, eevdf};
use crate::class::RunQueues;
use crate::class::effect::Effect;
use crate::class::table::Yield;
use crate::core::Life;
use crate::era::FairRules;
use crate::id::{EntityId, QueueId, TaskId};

impl RunQueues {
    /// Takes the next task off the timeline to run it, and its groups off theirs. A delayed task
    /// whose turn comes has paid what it owed, and is dequeued. With `skip`, CFS may pass over the
    /// task that has just run, at every level, for one that is not much further behind.
    pub(in crate::class) fn pick_skipping(&mut self, cpu: usize, skip: bool) -> Option<TaskId> {
        let mut queue = QueueId::of_cpu(cpu);
        loop {
            let fair = self.fair.queue(queue);
            let skip = skip.then_some(fair.put);
            let entity = match self.rules.fair {
                FairRules::Cfs { wakeup_granularity_ns, .. } => {
                    cfs::pick(fair, skip, wakeup_granularity_ns)
                }
                FairRules::Eevdf { .. } => eevdf::pick(fair, None, true),
            }?;
            if self.fair.entity(entity).delayed {
                self.drop_delayed(cpu, queue, entity);
                queue = QueueId::of_cpu(cpu);
                continue;
            }
            let picked = match self.fair.owner(entity) {
                Owner::Task(task) => task,
                Owner::Group(below) => {
                    queue = below;
                    continue;
                }
            };
            self.touch_levels(queue);
            self.touch_task(picked);
            self.fair.remove_waiting(queue, entity);
            while let Some((parent, entity)) = self.fair.above(queue) {
                self.fair.remove_waiting(parent, entity);
                queue = parent;
            }
            return Some(picked);
        }
    }

    /// Dequeues a delayed task or group whose turn has come, because it has paid what it owed.
    pub(super) fn drop_delayed(&mut self, cpu: usize, queue: QueueId, entity: EntityId) {
        let picked = match self.fair.owner(entity) {
            Owner::Task(task) => task,
            Owner::Group(below) => {
                self.touch_levels(below);
                return self.fair.leave_delayed_group(queue, entity);
            }
        };
        self.touch_levels(queue);
        self.touch_task(picked);
        self.fair.settle_lag(queue, entity);
        self.fair.remove_waiting(queue, entity);
        self.leave_queue(cpu, picked, true);
        self.effects.push(Effect::Paid(picked, cpu));
    }

    /// Makes the picked task the running one.
    #[inline(always)]
    pub(in crate::class) fn set_next_fair(&mut self, cpu: usize, task: TaskId) {
        self.tasks[task].life = Life::Running;
        let se = &mut self.fair.entities[EntityId::of_task(task)];
        assert!(se.queued, "task {task} runs and is on no queue");
        se.run.start_ns = self.now;
        se.picked_sum_ns = se.run.sum_ns;
        if self.rules.has(Change::OldestFirst) {
            self.fair.turns += 1;
            se.turn = self.fair.turns;
        }
        let deadline = se.deadline;
        let c = &mut self.cpus[cpu];
        assert!(c.current.is_none(), "cpu {cpu} runs two tasks");
        c.current = Some(task);
        c.need_resched = false;
        let choices = self.fair.choices[cpu];
        self.fair.choices[cpu] += 1;
        let (queue, entity) = self.level_of(task);
        let fair = self.fair.queue_mut(queue);
        fair.curr = entity;
        // All slices are equal: the entity is protected until its deadline.
        fair.protected_v = deadline;
        self.fair.clear_buddies(queue, entity);
        if self.fair.above(queue).is_some() {
            self.fair.set_above(queue, choices, self.now);
        }
    }

    /// Puts the running task back among those that wait.
    #[inline]
    pub(in crate::class) fn put_fair(&mut self, cpu: usize, task: TaskId) {
        self.account_fair(cpu, task);
        let queue = self.queue_of(task);
        self.touch_levels(queue);
        self.touch_task(task);
        self.cpus[cpu].current = None;
        let t = &mut self.tasks[task];
        t.life = Life::Queued;
        t.waits_since_ns = self.now;
        self.fair.put_levels(cpu, queue, task, true);
    }

    /// Makes the running task yield. The task keeps a CPU that it has for itself, and also one on
    /// which it is so far behind the others that they may not go first.
    pub(in crate::class) fn yield_fair(&mut self, cpu: usize, task: TaskId) -> Yield {
        if self.fair.cpu_queue(cpu).nr == 1 {
            return Yield::Keeps;
        }
        let picked_sum_ns = self.fair.entity_of(task).picked_sum_ns;
        let next = self.pick_after_yield(cpu, task);
        if next != task {
            return Yield::To(next);
        }
        self.set_next_fair(cpu, task);
        self.fair.entity_of_mut(task).picked_sum_ns = picked_sum_ns;
        Yield::Again
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
        let (rules, forfeits) = (self.rules.fair, self.rules.has(Change::YieldForfeits));
        let (fair, se) = self.fair.both_mut(queue, entity);
        let skip = match rules {
            FairRules::Cfs { .. } => {
                self.fair.clear_buddies(queue, entity);
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

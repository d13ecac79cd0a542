// SPDX-License-Identifier: GPL-2.0-or-later
//! The run queues of all CPUs, and the scheduling classes whose tasks are in them.
//!
//! [`RunQueues`] owns what runs and waits on each CPU, and offers the operations of the kernel's
//! `struct rq` and `struct sched_class`. This file finds the class of a task, or of the task that a
//! CPU runs, and passes an operation on to it: no other room knows the classes, and the classes do
//! not know each other. `below.rs` has what a class must know of those below it.
//!
//! An operation changes only the queues. Its side effects, such as an access to a contended line, are
//! recorded as [`Effect`]s, which the core applies afterwards.

mod account;
mod ask;
mod below;
mod effect;
pub(crate) mod ext;
pub(crate) mod fair;
mod idleness;
pub(crate) mod pelt;
mod queues;
pub(crate) mod rt;
pub(crate) mod run_time;
mod running;
pub(crate) mod table;
mod task;
mod tasks;

use perch_policy::Wake;

use crate::core::Life;
use crate::id::TaskId;

pub(crate) use effect::Effect;
pub(crate) use queues::{New, RunQueues};
pub(crate) use task::Task;

use ask::Rank;
use table::{Arrival, Choice, Departure, Yield};

/// The operations on a task, or on the running task of a CPU.
impl RunQueues {
    /// Enqueues a task, which is on no queue, on `cpu`. `moved` says that the balancer brings the
    /// task, and that it was not woken.
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, cpu: usize, task: TaskId, moved: bool) {
        self.update_current(cpu);
        match self.rank(task) {
            Rank::Ext => self.enqueue_ext(cpu, task, moved),
            Rank::Fair => self.enqueue_fair(cpu, task, moved),
            Rank::Rt => self.enqueue_rt(cpu, task),
        }
    }

    /// Puts the running task to sleep or ends it, as `life` says, and leaves the CPU without a task.
    #[inline(always)]
    pub(crate) fn leave(&mut self, cpu: usize, task: TaskId, life: Life) -> Departure {
        match self.rank(task) {
            Rank::Ext => {
                self.leave_ext(cpu, task, life);
                Departure { dequeued: true, pulls: false }
            }
            Rank::Fair => Departure { dequeued: self.leave_fair(cpu, task, life), pulls: false },
            Rank::Rt => Departure { dequeued: true, pulls: self.leave_rt(cpu, task, life) },
        }
    }

    /// Picks the task that runs next on `cpu`, which runs none: that of the highest class that has
    /// one.
    #[inline(always)]
    pub(crate) fn pick(&mut self, cpu: usize) -> Option<TaskId> {
        self.pick_rt(cpu).or_else(|| {
            if self.has_ext() { self.pick_ext(cpu) } else { self.pick_skipping(cpu, false) }
        })
    }

    /// Returns whether a class above that of the running task has a task that may run.
    #[inline]
    pub(crate) fn is_outranked(&self, cpu: usize, task: TaskId) -> bool {
        self.rank(task) < Rank::Rt && self.pick_rt(cpu).is_some()
    }

    /// Makes the picked task the running one.
    #[inline(always)]
    pub(crate) fn set_next(&mut self, cpu: usize, task: TaskId) {
        match self.rank(task) {
            Rank::Ext => self.set_next_ext(cpu, task),
            Rank::Fair => self.set_next_fair(cpu, task),
            Rank::Rt => {
                self.touch_queue(cpu);
                self.set_next_rt(cpu, task);
            }
        }
    }

    /// Returns whether `cpu` pushes waiting tasks away now that its switch is done.
    #[inline]
    pub(crate) fn pushes(&self, cpu: usize) -> bool {
        self.rank_running(cpu) == Rank::Rt
    }

    /// Puts the running task back among those that wait, and leaves the CPU without a task.
    #[inline(always)]
    pub(crate) fn put(&mut self, cpu: usize, task: TaskId) {
        match self.rank_running(cpu) {
            Rank::Ext => self.put_ext(cpu, task),
            Rank::Fair => self.put_fair(cpu, task),
            Rank::Rt => self.put_rt(cpu, task),
        }
    }

    /// Returns whether the running task, which was asked to give way, would be picked again. If so,
    /// the CPU does not switch.
    #[inline]
    pub(crate) fn goes_on(&mut self, cpu: usize, task: TaskId) -> bool {
        match self.rank_running(cpu) {
            Rank::Ext => self.goes_on_ext(cpu, task),
            Rank::Fair => false,
            Rank::Rt => self.goes_on_rt(cpu, task),
        }
    }

    /// Makes the running task yield.
    pub(crate) fn yields(&mut self, cpu: usize, task: TaskId) -> Yield {
        match self.rank(task) {
            Rank::Ext => self.yield_ext(cpu, task),
            Rank::Fair => self.yield_fair(cpu, task),
            Rank::Rt => self.yield_rt(cpu, task),
        }
    }

    /// Lets `wakee`, which was just enqueued on `cpu`, preempt the running task. A task of a lower
    /// class never does.
    #[inline(always)]
    pub(crate) fn arrives(&mut self, cpu: usize, wakee: TaskId) -> Arrival {
        let rank = self.rank(wakee);
        if self.rank_running(cpu) > rank {
            return Arrival::default();
        }
        match rank {
            Rank::Ext => self.check_preempt_ext(cpu),
            Rank::Fair => Arrival { preempts: self.check_preempt_fair(cpu, wakee), pushes: false },
            Rank::Rt => self.check_preempt_rt(cpu, wakee),
        }
    }

    /// Handles a tick during which `task` runs. Returns whether the task's class has had its share of
    /// the CPU.
    #[inline(always)]
    pub(crate) fn tick(&mut self, cpu: usize, task: TaskId) -> bool {
        match self.rank_running(cpu) {
            Rank::Ext => {
                self.tick_ext(cpu, task);
                self.tick_below(cpu);
                false
            }
            Rank::Fair => {
                self.tick_fair(cpu, task);
                self.tick_below(cpu);
                false
            }
            Rank::Rt => {
                self.touch_queue(cpu);
                self.tick_rt(cpu, task)
            }
        }
    }

    /// Chooses the CPU of a task that `here` wakes or forks, if its class does so itself.
    #[inline]
    pub(crate) fn choose(&mut self, task: TaskId, wake: &Wake, here: usize) -> Choice {
        match self.rank(task) {
            Rank::Ext => self.choose_ext(task, wake, here),
            Rank::Fair => Choice::Policy,
            // `select_task_rq_rt` looks at wake-ups and forks only.
            Rank::Rt if wake.exec => Choice::Stays,
            Rank::Rt => {
                let (cpu, step) = self.choose_rt(task, wake.prev_cpu, here);
                Choice::Class(cpu, step)
            }
        }
    }

    /// Prepares a sleeping task to change its CPU. Returns whether this changes the old CPU's queue.
    #[inline(always)]
    pub(crate) fn migrate(&mut self, task: TaskId) -> bool {
        let fair = self.rank(task) == Rank::Fair;
        if fair {
            self.leave_cpu(task, true);
        }
        fair
    }

    /// Prepares a task for its first wake-up, which will send it to `cpu`.
    pub(crate) fn born(&mut self, task: TaskId, cpu: usize) {
        if self.rank(task) == Rank::Fair {
            self.born_fair(task, cpu);
        }
    }

    /// Returns whether the CPU of the parent checks at once for a reschedule when `task` appears,
    /// whose parent is not simulated.
    pub(crate) fn switches_parent(&self, task: TaskId) -> bool {
        self.rank(task) == Rank::Rt
    }
}

#[cfg(test)]
mod tests;

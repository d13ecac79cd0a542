// SPDX-License-Identifier: GPL-2.0-or-later
//! The scheduling classes and the one place that knows all of them.
//!
//! A class is a type without a value that answers the questions of [`Class`], as a kernel's class
//! is a table of functions (`DEFINE_SCHED_CLASS`). The methods of [`Sched`] in this file find the
//! class of a task, or of the task that a CPU runs, and pass the question on. The core and the
//! balancer call these methods and never ask which class a task has; the classes do not know each
//! other. `below.rs` has what a class must know of those below it.

mod account;
mod ask;
mod below;
pub(crate) mod fair;
mod idleness;
pub(crate) mod pelt;
mod queues;
pub(crate) mod rt;
pub(crate) mod run_time;
pub(crate) mod table;

use perch_policy::Wake;

use crate::core::{Life, Sched, Waker};
use crate::id::TaskId;

use ask::Rank;
pub(crate) use queues::{RunQueue, RunQueues};

use fair::FairClass;
use rt::RtClass;
use table::{Class, Yield};

/// Passes a question on to the class of rank `$rank`: the table of classes.
macro_rules! ask {
    ($rank:expr, $question:ident($($with:expr),*)) => {
        match $rank {
            Rank::Fair => FairClass::$question($($with),*),
            Rank::Rt => RtClass::$question($($with),*),
        }
    };
}

/// Questions about a task, or about the running task of a CPU.
impl Sched<'_> {
    /// Enqueues `task` on `cpu`, see [`Class::enqueue`].
    pub(crate) fn enqueue(&mut self, cpu: usize, task: TaskId, moved: bool) {
        self.end_streak(cpu);
        self.update_current(cpu);
        ask!(self.rank(task), enqueue(self, cpu, task, moved));
    }

    /// Takes the running task off its CPU, see [`Class::leave`].
    pub(crate) fn leave(&mut self, cpu: usize, task: TaskId, life: Life) {
        ask!(self.rank(task), leave(self, cpu, task, life));
    }

    /// Picks the task that runs next on `cpu`, which runs none: that of the highest class that has
    /// one.
    pub(crate) fn pick(&mut self, cpu: usize) -> Option<TaskId> {
        RtClass::pick(self, cpu).or_else(|| FairClass::pick(self, cpu))
    }

    /// Returns whether a class above that of the running task has a task that may run.
    #[inline]
    pub(crate) fn is_outranked(&mut self, cpu: usize, task: TaskId) -> bool {
        self.rank(task) < Rank::Rt && RtClass::pick(self, cpu).is_some()
    }

    /// Makes the picked task the running one, see [`Class::set_next`].
    pub(crate) fn set_next(&mut self, cpu: usize, task: TaskId) {
        let rank = self.rank(task);
        if rank > Rank::Fair {
            self.touch_queue(cpu);
        }
        ask!(rank, set_next(self, cpu, task));
        self.note_misfit(cpu);
    }

    /// Tells the class that the switch to the running task is done, see [`Class::switched`].
    #[inline]
    pub(crate) fn switched(&mut self, cpu: usize) {
        ask!(self.rank_running(cpu), switched(self, cpu));
    }

    /// Puts the running task back among those that wait, see [`Class::put`].
    pub(crate) fn put(&mut self, cpu: usize) {
        let Some(task) = self.rq.cpus[cpu].current else {
            return;
        };
        ask!(self.rank_running(cpu), put(self, cpu, task));
    }

    /// Returns whether the running task would be picked again, see [`Class::goes_on`].
    #[inline]
    pub(crate) fn goes_on(&mut self, cpu: usize, task: TaskId) -> bool {
        ask!(self.rank_running(cpu), goes_on(self, cpu, task))
    }

    /// Makes the running task yield, see [`Class::yields`].
    pub(crate) fn yields(&mut self, cpu: usize, task: TaskId) -> Yield {
        ask!(self.rank(task), yields(self, cpu, task))
    }

    /// Lets `wakee`, which was just enqueued on `cpu`, preempt the running task. A task of a lower
    /// class never does.
    pub(crate) fn check_preempt(&mut self, cpu: usize, wakee: TaskId) {
        let rank = self.rank(wakee);
        if self.rank_running(cpu) > rank {
            return;
        }
        ask!(rank, check_preempt(self, cpu, wakee));
    }

    /// Handles a tick during which `task` runs, see [`Class::tick`].
    pub(crate) fn tick_current(&mut self, cpu: usize, task: TaskId) {
        match self.rank_running(cpu) {
            Rank::Fair => {
                FairClass::tick(self, cpu, task);
                self.note_misfit(cpu);
                self.tick_below(cpu);
            }
            Rank::Rt => {
                self.touch_queue(cpu);
                RtClass::tick(self, cpu, task);
            }
        }
    }

    /// Chooses a task's CPU, see [`Class::select`].
    pub(crate) fn select(&mut self, task: TaskId, wake: &Wake, waker: Waker) -> (usize, u32) {
        ask!(self.rank(task), select(self, task, wake, waker))
    }

    /// Prepares a sleeping task to change its CPU, see [`Class::migrate`].
    pub(crate) fn migrate(&mut self, task: TaskId) {
        ask!(self.rank(task), migrate(self, task));
    }

    /// Prepares a task for its first wake-up, see [`Class::born`].
    pub(crate) fn born(&mut self, task: TaskId, cpu: usize) {
        ask!(self.rank(task), born(self, task, cpu));
    }

    /// Returns the [`Class::SWITCHES_PARENT`] of the class of `task`.
    pub(crate) fn switches_parent(&self, task: TaskId) -> bool {
        match self.rank(task) {
            Rank::Fair => FairClass::SWITCHES_PARENT,
            Rank::Rt => RtClass::SWITCHES_PARENT,
        }
    }
}

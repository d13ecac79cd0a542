// SPDX-License-Identifier: GPL-2.0-or-later
//! The scheduling classes and the one place that knows all of them.
//!
//! A class is a type without a value that answers the questions of [`Class`], as a kernel's class
//! is a table of functions (`DEFINE_SCHED_CLASS`). The methods of [`Sched`] in this file find the
//! class of a task, or of what a CPU runs, and pass the question on; they also hold what one class
//! must know of the classes below it. The core and the balancer call these methods and never ask
//! which class a task has; the classes do not know each other.

pub(crate) mod fair;
pub(crate) mod pelt;
pub(crate) mod rt;

use perch_policy::Wake;

use crate::core::{Life, Sched, Waker};

use fair::FairClass;
use rt::RtClass;

/// What a class answers. `sched` is the whole scheduler; a class changes its own state, the task
/// and the CPU that it is asked for, and what the policy sees of them.
pub(crate) trait Class {
    /// Puts a task that is on no queue on that of `cpu`. `moved`: the balancer brings the task, and
    /// nobody woke it. What the CPU runs has been accounted.
    fn enqueue(sched: &mut Sched<'_>, cpu: usize, task: u32, moved: bool);

    /// The running task sleeps or ends, as `life` says, and leaves the CPU without a task.
    fn leave(sched: &mut Sched<'_>, cpu: usize, task: u32, life: Life);

    /// The task of this class that runs next on `cpu`, if there is one.
    fn pick(sched: &mut Sched<'_>, cpu: usize) -> Option<u32>;

    /// The picked task becomes the running one.
    fn set_next(sched: &mut Sched<'_>, cpu: usize, task: u32);

    /// The switch to a task of this class is done: the class may do what has waited for that.
    fn switched(sched: &mut Sched<'_>, cpu: usize);

    /// The running task goes back to those that wait.
    fn put(sched: &mut Sched<'_>, cpu: usize, task: u32);

    /// Whether the running task, which was asked to give way, would be picked again: then nothing
    /// is switched.
    fn goes_on(sched: &mut Sched<'_>, cpu: usize, task: u32) -> bool;

    /// The running task yields.
    fn yields(sched: &mut Sched<'_>, cpu: usize, task: u32) -> Yield;

    /// A task of this class has just been queued on `cpu`, which runs no higher class: the class
    /// asks for a switch if the task should take the CPU.
    fn check_preempt(sched: &mut Sched<'_>, cpu: usize, wakee: u32);

    /// A tick finds a task of this class running.
    fn tick(sched: &mut Sched<'_>, cpu: usize, task: u32);

    /// Accounts the time that the running task has run since this was done last.
    fn update_current(sched: &mut Sched<'_>, cpu: usize, task: u32);

    /// Chooses the CPU of a task that wakes up, is forked or calls exec. Returns the CPU, and how
    /// many CPUs were examined for it.
    fn select(sched: &mut Sched<'_>, task: u32, wake: &Wake, waker: Waker) -> (usize, u32);

    /// A sleeping task is about to change its CPU.
    fn migrate(sched: &mut Sched<'_>, task: u32);

    /// A task wakes up for the first time and will be sent to `cpu`.
    fn born(sched: &mut Sched<'_>, task: u32, cpu: usize);

    /// Whether the CPU of a task's parent, which is not simulated, looks at once whether it has to
    /// switch when the task appears.
    const SWITCHES_PARENT: bool;
}

/// What comes of a yield.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Yield {
    /// The task keeps the CPU.
    Keeps,
    /// Another task should run, and it is not chosen yet.
    GivesWay,
    /// The task waits again, and this one is picked.
    To(u32),
}

/// The class of a task, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Fair,
    Rt,
}

/// Passes a question on to a class: the table of classes.
macro_rules! ask {
    ($rank:expr, $question:ident($($with:expr),*)) => {
        match $rank {
            Rank::Fair => FairClass::$question($($with),*),
            Rank::Rt => RtClass::$question($($with),*),
        }
    };
}

/// How long somebody has run, as every class accounts it (`update_curr_common`); nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunTime {
    /// Since when the run time is not yet accounted.
    pub start_ns: u64,
    /// Run time in all.
    pub sum_ns: u64,
}

impl RunTime {
    /// Accounts the time up to `now_ns` and returns how long it is.
    #[inline(always)]
    pub fn account(&mut self, now_ns: u64) -> u64 {
        let delta_ns = now_ns.saturating_sub(self.start_ns);
        if delta_ns > 0 {
            self.start_ns = now_ns;
            self.sum_ns += delta_ns;
        }
        delta_ns
    }
}

/// Questions about a task or about what a CPU runs.
impl Sched<'_> {
    #[inline]
    fn rank(&self, task: u32) -> Rank {
        match self.is_rt(task) {
            true => Rank::Rt,
            false => Rank::Fair,
        }
    }

    #[inline]
    fn rank_running(&self, cpu: usize) -> Rank {
        match self.runs_rt(cpu) {
            true => Rank::Rt,
            false => Rank::Fair,
        }
    }

    /// Puts a task on a queue, see [`Class::enqueue`].
    pub(crate) fn enqueue(&mut self, cpu: usize, task: u32, moved: bool) {
        self.end_streak(cpu);
        self.update_current(cpu);
        ask!(self.rank(task), enqueue(self, cpu, task, moved));
    }

    /// The running task leaves its CPU, see [`Class::leave`].
    pub(crate) fn leave(&mut self, cpu: usize, task: u32, life: Life) {
        ask!(self.rank(task), leave(self, cpu, task, life));
    }

    /// The task that runs next on a CPU that runs nobody: that of the highest class that has one.
    pub(crate) fn pick(&mut self, cpu: usize) -> Option<u32> {
        RtClass::pick(self, cpu).or_else(|| FairClass::pick(self, cpu))
    }

    /// Whether a class above that of the running task has a task that may run.
    #[inline]
    pub(crate) fn is_outranked(&mut self, cpu: usize, task: u32) -> bool {
        self.rank(task) < Rank::Rt && RtClass::pick(self, cpu).is_some()
    }

    /// The picked task becomes the running one, see [`Class::set_next`].
    pub(crate) fn set_next(&mut self, cpu: usize, task: u32) {
        let rank = self.rank(task);
        if rank > Rank::Fair {
            self.touch_queue(cpu);
        }
        ask!(rank, set_next(self, cpu, task));
        self.note_misfit(cpu);
    }

    /// The switch to the running task is done, see [`Class::switched`].
    #[inline]
    pub(crate) fn switched(&mut self, cpu: usize) {
        ask!(self.rank_running(cpu), switched(self, cpu));
    }

    /// The running task goes back to those that wait, see [`Class::put`].
    pub(crate) fn put(&mut self, cpu: usize) {
        let Some(task) = self.cpus[cpu].current else {
            return;
        };
        ask!(self.rank_running(cpu), put(self, cpu, task));
    }

    /// Whether the running task would be picked again, see [`Class::goes_on`].
    #[inline]
    pub(crate) fn goes_on(&mut self, cpu: usize, task: u32) -> bool {
        ask!(self.rank_running(cpu), goes_on(self, cpu, task))
    }

    /// The running task yields, see [`Class::yields`].
    pub(crate) fn yields(&mut self, cpu: usize, task: u32) -> Yield {
        ask!(self.rank(task), yields(self, cpu, task))
    }

    /// A task has just been queued on a CPU: it may take that CPU. A lower class never does.
    pub(crate) fn check_preempt(&mut self, cpu: usize, wakee: u32) {
        let rank = self.rank(wakee);
        if self.rank_running(cpu) > rank {
            return;
        }
        ask!(rank, check_preempt(self, cpu, wakee));
    }

    /// A tick finds a task running, see [`Class::tick`].
    pub(crate) fn tick_current(&mut self, cpu: usize, task: u32) {
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

    /// Accounts the running task's time.
    #[inline]
    pub(crate) fn update_current(&mut self, cpu: usize) {
        let Some(task) = self.cpus[cpu].current else {
            return;
        };
        ask!(self.rank_running(cpu), update_current(self, cpu, task));
    }

    /// Chooses a task's CPU, see [`Class::select`].
    pub(crate) fn select(&mut self, task: u32, wake: &Wake, waker: Waker) -> (usize, u32) {
        ask!(self.rank(task), select(self, task, wake, waker))
    }

    /// A sleeping task is about to change its CPU, see [`Class::migrate`].
    pub(crate) fn migrate(&mut self, task: u32) {
        ask!(self.rank(task), migrate(self, task));
    }

    /// A task wakes up for the first time, see [`Class::born`].
    pub(crate) fn born(&mut self, task: u32, cpu: usize) {
        ask!(self.rank(task), born(self, task, cpu));
    }

    /// See [`Class::SWITCHES_PARENT`].
    pub(crate) fn switches_parent(&self, task: u32) -> bool {
        match self.rank(task) {
            Rank::Fair => FairClass::SWITCHES_PARENT,
            Rank::Rt => RtClass::SWITCHES_PARENT,
        }
    }
}

/// What more than one class adds to.
impl Sched<'_> {
    /// Runnable tasks of all classes on a CPU, the running one included.
    #[inline]
    pub fn nr(&self, cpu: usize) -> u32 {
        self.nr_fair(cpu) + self.nr_rt(cpu)
    }

    /// The running task of a CPU if the balancer may move it: one of the lowest class.
    #[inline]
    pub(crate) fn fair_current(&self, cpu: usize) -> Option<u32> {
        self.cpus[cpu].current.filter(|_| !self.runs_rt(cpu))
    }

    /// Whether a task is one that the balancer may move, of the lowest class.
    #[inline]
    pub(crate) fn is_balanced(&self, task: u32) -> bool {
        self.rank(task) == Rank::Fair
    }

    /// Whether the classes together leave a CPU no idle time.
    pub(crate) fn is_full(&self, cpu: usize) -> bool {
        self.fair_average(cpu).is_full_with(self.rt_average(cpu))
    }
}

/// What a class may know of those below it.
impl Sched<'_> {
    /// Tasks of the classes below the real-time one on a CPU.
    #[inline]
    fn nr_below_rt(&self, cpu: usize) -> u32 {
        self.nr_fair(cpu)
    }

    /// Whether one of those tasks could run.
    #[inline]
    fn waits_below_rt(&self, cpu: usize) -> bool {
        self.nr_fair(cpu) > self.nr_delayed(cpu)
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The questions that every scheduling class answers.

use perch_policy::Wake;

use crate::core::{Life, Sched, Waker};

/// The questions that a class answers. `sched` is the whole scheduler; a class changes its own
/// state, the task and the CPU that it is asked about, and what the policy sees of them.
pub(crate) trait Class {
    /// Enqueues a task, which is on no queue, on `cpu`. `moved` says that the balancer brings the
    /// task, and that it was not woken. The run time of the running task has been accounted.
    fn enqueue(sched: &mut Sched<'_>, cpu: usize, task: u32, moved: bool);

    /// Puts the running task to sleep or ends it, as `life` says, and leaves the CPU without a
    /// task.
    fn leave(sched: &mut Sched<'_>, cpu: usize, task: u32, life: Life);

    /// Returns the task of this class that runs next on `cpu`, if there is one.
    fn pick(sched: &mut Sched<'_>, cpu: usize) -> Option<u32>;

    /// Makes the picked task the running one.
    fn set_next(sched: &mut Sched<'_>, cpu: usize, task: u32);

    /// Does what has waited for the end of the switch to a task of this class.
    fn switched(sched: &mut Sched<'_>, cpu: usize);

    /// Puts the running task back among those that wait.
    fn put(sched: &mut Sched<'_>, cpu: usize, task: u32);

    /// Returns whether the running task, which was asked to give way, would be picked again. If so,
    /// the CPU does not switch.
    fn goes_on(sched: &mut Sched<'_>, cpu: usize, task: u32) -> bool;

    /// Makes the running task yield.
    fn yields(sched: &mut Sched<'_>, cpu: usize, task: u32) -> Yield;

    /// Asks for a switch if `wakee` should preempt the running task. `wakee` is of this class and
    /// was just enqueued on `cpu`, which runs no task of a higher class.
    fn check_preempt(sched: &mut Sched<'_>, cpu: usize, wakee: u32);

    /// Handles a tick during which a task of this class runs.
    fn tick(sched: &mut Sched<'_>, cpu: usize, task: u32);

    /// Chooses the CPU of a task that wakes up, is forked or calls exec. Returns the CPU, and how
    /// many CPUs were examined for it.
    fn select(sched: &mut Sched<'_>, task: u32, wake: &Wake, waker: Waker) -> (usize, u32);

    /// Prepares a sleeping task to change its CPU.
    fn migrate(sched: &mut Sched<'_>, task: u32);

    /// Prepares a task for its first wake-up, which will send it to `cpu`.
    fn born(sched: &mut Sched<'_>, task: u32, cpu: usize);

    /// True if the CPU of the parent checks at once for a reschedule when a task appears whose
    /// parent is not simulated.
    const SWITCHES_PARENT: bool;
}

/// The consequence of a yield.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Yield {
    /// The task keeps the CPU.
    Keeps,
    /// The task gives way to another, which is not picked yet.
    GivesWay,
    /// The task waits again, and the class has picked this one.
    To(u32),
}

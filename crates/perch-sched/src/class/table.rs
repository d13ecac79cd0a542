// SPDX-License-Identifier: GPL-2.0-or-later
//! What every scheduling class answers.

use perch_policy::Wake;

use crate::core::{Life, Sched, Waker};
use crate::id::TaskId;

/// What a class answers. `sched` is the whole scheduler; a class changes its own state, the task
/// and the CPU that it is asked for, and what the policy sees of them.
pub(crate) trait Class {
    /// Puts a task that is on no queue on that of `cpu`. `moved`: the balancer brings the task, and
    /// nobody woke it. What the CPU runs has been accounted.
    fn enqueue(sched: &mut Sched<'_>, cpu: usize, task: TaskId, moved: bool);

    /// The running task sleeps or ends, as `life` says, and leaves the CPU without a task.
    fn leave(sched: &mut Sched<'_>, cpu: usize, task: TaskId, life: Life);

    /// The task of this class that runs next on `cpu`, if there is one.
    fn pick(sched: &mut Sched<'_>, cpu: usize) -> Option<TaskId>;

    /// The picked task becomes the running one.
    fn set_next(sched: &mut Sched<'_>, cpu: usize, task: TaskId);

    /// The switch to a task of this class is done: the class may do what has waited for that.
    fn switched(sched: &mut Sched<'_>, cpu: usize);

    /// The running task goes back to those that wait.
    fn put(sched: &mut Sched<'_>, cpu: usize, task: TaskId);

    /// Whether the running task, which was asked to give way, would be picked again: then nothing
    /// is switched.
    fn goes_on(sched: &mut Sched<'_>, cpu: usize, task: TaskId) -> bool;

    /// The running task yields.
    fn yields(sched: &mut Sched<'_>, cpu: usize, task: TaskId) -> Yield;

    /// A task of this class has just been queued on `cpu`, which runs no higher class: the class
    /// asks for a switch if the task should take the CPU.
    fn check_preempt(sched: &mut Sched<'_>, cpu: usize, wakee: TaskId);

    /// A tick finds a task of this class running.
    fn tick(sched: &mut Sched<'_>, cpu: usize, task: TaskId);

    /// Chooses the CPU of a task that wakes up, is forked or calls exec. Returns the CPU, and how
    /// many CPUs were examined for it.
    fn select(sched: &mut Sched<'_>, task: TaskId, wake: &Wake, waker: Waker) -> (usize, u32);

    /// A sleeping task is about to change its CPU.
    fn migrate(sched: &mut Sched<'_>, task: TaskId);

    /// A task wakes up for the first time and will be sent to `cpu`.
    fn born(sched: &mut Sched<'_>, task: TaskId, cpu: usize);

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
    To(TaskId),
}

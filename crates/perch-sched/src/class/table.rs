// SPDX-License-Identifier: GPL-2.0-or-later
//! The answers of the scheduling classes.

use crate::id::TaskId;
use crate::observe::RtStep;

/// The consequence of a yield.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Yield {
    /// The task keeps the CPU.
    Keeps,
    /// The task was put back and picked again, so that it keeps the CPU with a new turn.
    Again,
    /// The task gives way to another, which is not picked yet.
    GivesWay,
    /// The task waits again, and the class has picked this one.
    To(TaskId),
}

/// The consequence of a task's departure from its CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    /// False if EEVDF keeps the sleeping task queued until it has paid what it owes.
    pub dequeued: bool,
    /// True if the CPU looks for tasks of the class on overloaded CPUs.
    pub pulls: bool,
}

/// The consequence of a wakee's arrival in a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrival {
    /// True if the wakee preempts the running task, so that the CPU was asked to reschedule.
    pub preempts: bool,
    /// True if the CPU pushes tasks that wait to other CPUs.
    pub pushes: bool,
}

/// Who chooses the CPU of a task that wakes up, is forked or calls exec.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Choice {
    Policy,
    /// The task stays on its CPU.
    Stays,
    /// An outside scheduler has chosen this CPU.
    Outside(usize),
    /// The task's class has chosen this CPU, in this step.
    Class(usize, RtStep),
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The states of a task's life, and the wakers of tasks: words that every room uses.

/// The state of a task between its birth and its death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// The task is not forked yet.
    Unborn,
    /// The task waits for a message or a timer, and is on no queue (or, in EEVDF, is queued but
    /// delayed).
    Asleep,
    /// The task was woken, and is on its way to a CPU's queue.
    Waking,
    /// The task is on a CPU's queue, and does not run.
    Queued,
    /// The task runs on a CPU.
    Running,
    /// The task has ended.
    Dead,
}

/// The waker of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waker {
    /// The running task, or an interrupt that arrived while the task ran.
    Task(u32),
    /// An interrupt on an idle CPU.
    Idle,
}

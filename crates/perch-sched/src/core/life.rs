// SPDX-License-Identifier: GPL-2.0-or-later
//! Where a task is in its life, and who wakes it: words that every room uses.

use crate::id::TaskId;

/// Where a task is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Not forked yet.
    Unborn,
    /// Waits for a message or a timer; not on a queue (or, in EEVDF, queued but delayed).
    Asleep,
    /// Woken, on its way to a CPU's queue.
    Waking,
    /// On a queue.
    Queued,
    /// On a CPU.
    Running,
    /// Gone.
    Dead,
}

/// Who wakes a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waker {
    /// The running task, or an interrupt on top of it.
    Task(TaskId),
    /// An interrupt on an idle CPU.
    Idle,
}

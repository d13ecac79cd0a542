// SPDX-License-Identifier: GPL-2.0-or-later
//! The side effects of operations on the run queues.

use crate::hardware::{Access, Field, Symbol};
use crate::id::TaskId;

/// A side effect of an operation on the run queues. The core applies them in order: it charges the
/// accesses and tells observers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    /// The CPU that executes the operation accesses a contended line.
    Line(Symbol, Field, Access),
    /// That CPU, which looks for CPUs of a lower priority, reads the counters of the levels of cpupri
    /// from this one to that, one after the other.
    Levels(u8, u8),
    /// A queue has got a second task: the CPU that executes the operation reads the root domain's
    /// flag of overload in this function, and sets it if need be.
    Crowded(Symbol),
    /// This CPU has got its first pushable task.
    Overloaded(usize),
    /// This CPU has read this many counters of overloaded CPUs.
    Looked(usize, u32),
    /// This delayed task has paid what it owed, and left the queue of this CPU.
    Paid(TaskId, usize),
    /// This CPU was asked to reschedule.
    Rescheduled(usize),
    /// This CPU is to be asked to reschedule once the CPU that executes the operation has done it,
    /// and so many nanoseconds later.
    Kicked(usize, u64),
    /// A waiting task of the extensible class has moved to another CPU's queue.
    Fetched { task: TaskId, from: usize, to: usize },
    /// The operation took the CPU that executes it this many nanoseconds of kernel work.
    Took(u64),
    /// The CPU that executes the operation starts a timer of the outside scheduler's.
    Timer { at_ns: u64, key: u32 },
}

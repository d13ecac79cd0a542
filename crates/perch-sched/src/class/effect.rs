// SPDX-License-Identifier: GPL-2.0-or-later
//! What an operation on the run queues does beyond them.

use crate::hardware::{Access, Field, Symbol};
use crate::id::TaskId;

/// What an operation on the run queues does beyond them, in the order in which it does so. The core
/// charges the accesses and tells observers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    /// The CPU that executes the operation accesses a contended line.
    Line(Symbol, Field, Access),
    /// A queue has got a second task: the CPU that executes the operation reads the root domain's
    /// flag of overload in this function, and sets it if need be.
    Crowded(Symbol),
    /// This CPU has got its first pushable task.
    Overloaded(usize),
    /// This CPU has read so many counters of overloaded CPUs.
    Looked(usize, u32),
    /// This delayed task has paid what it owed, and left the queue of this CPU.
    Paid(TaskId, usize),
}

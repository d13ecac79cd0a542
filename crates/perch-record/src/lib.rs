// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings of wake-ups: every decision of a kernel with all that it could see, in a file, and
//! what a policy would have made of the same moments.
//!
//! A recording is written by whoever sees the decisions: the recorder in a kernel, or a simulation.
//! It is read in one pass, block by block, in constant memory; see docs/recordings.md.

pub mod advice;
mod cause;
pub mod format;
mod moment;
mod parallel;
mod raw;
mod recorder;
mod replay;
#[doc(hidden)]
pub mod synthetic;

pub use cause::Cause;
pub use moment::{
    Class, Columns, Cpu, CpuRow, Group, GroupRow, Row, Task, TaskRow, UNSEEN_CONTEXT, UNSEEN_ROWS,
    WakeUp,
};
pub use recorder::{RecordError, Recorder};
pub use replay::{Decided, Distance, Outcome, Replay, Tally, replay};

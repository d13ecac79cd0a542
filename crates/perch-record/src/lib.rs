// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings of wake-ups: a file with every decision of a kernel and all that the kernel could
//! see, and the choices of a policy at the same moments.
//!
//! A recorder in a kernel or a simulation writes a recording, since both see the decisions. A
//! reader takes it in one pass, block by block, in constant memory; see docs/recordings.md.

pub mod advice;
mod agreement;
mod capacity;
mod cause;
mod decision;
pub mod format;
mod moment;
mod parallel;
mod profile;
mod raw;
mod recorder;
mod replay;
pub mod result;
mod sink;
mod stake;
mod subject;
#[doc(hidden)]
pub mod synthetic;

pub use agreement::{Agreement, ENOUGH, Summary, Worst};
pub use capacity::{GroupCapacity, group_capacities};
pub use cause::Cause;
pub use decision::{Decision, Entity, Kind, KindTally, Question, Queue, Why};
pub use moment::{
    Class, Columns, Cpu, CpuRow, Group, GroupRow, HEARD, Row, Task, TaskRow, UNSEEN_CONTEXT,
    UNSEEN_ROWS, WakeUp,
};
pub use profile::{Profile, Times, steady};
pub use recorder::{RecordError, Recorder};
pub use replay::{Decided, DomainDistance, Outcome, Replay, Tally, replay};
pub use result::ReplayResult;
pub use subject::{
    ChangeError, Subject, SubjectError, change_mode, check_era, no_wake_ups, unrecorded, version_of,
};

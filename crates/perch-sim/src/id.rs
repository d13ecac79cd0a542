// SPDX-License-Identifier: GPL-2.0-or-later
//! Names of what the tasks of a run share, and of where they run.
//!
//! A workload's operations have the same numbers as bare integers, see [`perch_workload::Op`]; the
//! interpreter turns these into names where it reads an operation. CPUs are bare integers of the
//! machine's word size where they are computed with, as in the scheduler's interface.

pub use perch_engine::{Id, IdVec, TaskId};

perch_engine::ids! {
    /// A channel between tasks.
    pub ChannelId;
    pub PipeId;
    pub MutexId;
    pub CounterId;
    /// A condition variable, or that of a barrier.
    pub ConditionId;
    /// A timer that tasks share.
    pub TimerId;
    /// A CPU of the host, where a structure keeps one.
    pub CpuId;
    /// A virtual machine.
    pub GuestId;
    /// A vCPU of a virtual machine, by its number there.
    pub VcpuId;
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The run queues: what runs and waits on each CPU, the classes' state, and the clock.

use std::sync::Arc;

use perch_policy::{CpuMask, Topology};

use super::fair::FairState;
use super::idleness::Idleness;
use super::pelt::Clock;
use super::rt::{RtDomain, RtQueue};
use crate::core::Task;
use crate::era::EraRules;
use crate::id::{IdVec, MaskId, TaskId};

/// The run queues of all CPUs, and the tasks in them.
pub(crate) struct RunQueues {
    pub(crate) now: u64,
    pub(crate) rules: EraRules,
    pub(crate) tick_ns: u64,
    pub(crate) cpus: Vec<RunQueue>,
    pub(crate) tasks: IdVec<TaskId, Task>,
    /// The tasks' affinities, each stored once.
    pub(crate) affinities: IdVec<MaskId, Arc<CpuMask>>,
    /// True if the CPUs differ in capacity.
    pub(crate) unequal: bool,
    /// The fair class's state that belongs to no single CPU.
    pub(crate) fair: FairState,
    /// The real-time class's part of the root domain, if any task is of that class.
    pub(crate) rt: Option<Box<RtDomain>>,
}

/// The run queue of a CPU. Its fair part is in [`FairState`], beside the queues of task groups.
#[derive(Debug)]
pub(crate) struct RunQueue {
    /// The running task.
    pub(crate) current: Option<TaskId>,
    /// True if the running task should give way as soon as possible.
    pub(crate) need_resched: bool,
    /// The clock of the PELT averages.
    pub(crate) pelt: Clock,
    /// The idle and busy times, and the average length of idle periods.
    pub(crate) idleness: Idleness,
    /// The real-time class's part.
    pub(crate) rt: RtQueue,
}

impl RunQueue {
    /// Returns the queue of a CPU on which nothing has run yet.
    pub(crate) fn new(topology: &Topology, cpu: usize) -> RunQueue {
        RunQueue {
            current: None,
            need_resched: false,
            pelt: Clock::new(topology.capacity(cpu)),
            idleness: Idleness::new(),
            rt: RtQueue::default(),
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The parts that a scheduler is made of: the machine, the kernel, and the tasks and groups of a
//! run.

use std::sync::Arc;

use perch_machine::{Footprint, Machine};
use perch_policy::{CpuMask, Policy, Topology};

use crate::hardware::SharedSet;
use crate::id::MaskId;

/// A task as it is set up. Its number is its place in [`Setup::tasks`].
#[derive(Clone, Copy, Debug)]
pub struct NewTask {
    /// Nice level, -20 to 19.
    pub nice: i8,
    /// Real-time priority, 1 to 99; 0 for a task of the fair class.
    pub priority: u8,
    /// True for a real-time task that gives way to others of its priority after a slice (SCHED_RR).
    pub slices: bool,
    /// The least and the most that the task's utilisation counts as where a CPU is chosen for it,
    /// each 0 to 1024.
    pub uclamp: (u32, u32),
    /// The CPUs that the task may use, by their place in [`Setup::masks`].
    pub affinity: MaskId,
    /// The cache lines that the task touches every time it runs.
    pub footprint: Footprint,
    /// The address space that the task runs in, by its place in [`Setup::spaces`].
    pub space: Option<u32>,
    /// The task group that it is in, by its place in [`Setup::groups`]; `None` for the root group.
    pub group: Option<usize>,
    /// True for a task whose work is that of others, which the scheduler does not see (a vCPU):
    /// [`super::Programs`] is told each time the task gets a CPU.
    pub carries: bool,
}

/// A task group as it is set up.
#[derive(Clone, Copy, Debug)]
pub struct NewGroup {
    /// The group that this one is in, by its place in [`Setup::groups`], which is before its own;
    /// `None` for the root group.
    pub parent: Option<usize>,
    /// The group's weight among the other entities of its parent, 2 to 262144.
    pub shares: u32,
}

/// The parts that a scheduler is made of.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'s> {
    /// The machine.
    pub machine: &'s Machine,
    /// The kernel's view of the machine.
    pub topology: &'s Arc<Topology>,
    /// The stock kernel, and the modes of the mechanisms in it.
    pub policy: Policy,
    /// Ticks per second, 1 to 10,000.
    pub hz: u32,
    /// True if the root domain is laid out as the series of 2025 has it, see
    /// [`crate::hardware::Layouts`].
    pub rearranged: bool,
    /// Every task of the run. A task that never comes to a CPU of this machine (a guest's, say)
    /// keeps its number and costs nothing.
    pub tasks: &'s [NewTask],
    /// The task groups.
    pub groups: &'s [NewGroup],
    /// The sets of CPUs that tasks' affinities refer to.
    pub masks: &'s [Arc<CpuMask>],
    /// The data that the threads of each process share.
    pub spaces: &'s [SharedSet],
    /// The source of all random numbers.
    pub seed: u64,
}

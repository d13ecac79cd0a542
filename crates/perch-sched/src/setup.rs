// SPDX-License-Identifier: GPL-2.0-or-later
//! What a scheduler is made of: the machine, the kernel, and the tasks and groups there will be.

use std::sync::Arc;

use perch_machine::Machine;
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
    /// A real-time task that gives way to its equals after a slice (SCHED_RR).
    pub slices: bool,
    /// What its utilisation is clamped to where a CPU is chosen for it: least and most, 0 to 1024.
    pub uclamp: (u32, u32),
    /// The CPUs that it may use, by their place in [`Setup::masks`].
    pub affinity: MaskId,
    /// Cache lines of its own that it touches every time it runs.
    pub footprint: u32,
    /// The address space it runs in, by its place in [`Setup::spaces`].
    pub space: Option<u32>,
    /// The task group that it is in, by its place in [`Setup::groups`]; `None` for the root group.
    pub group: Option<usize>,
    /// Its work is that of others, whom the scheduler does not see (a vCPU): [`super::Programs`] is
    /// told each time it gets a CPU.
    pub carries: bool,
}

/// A task group as it is set up.
#[derive(Clone, Copy, Debug)]
pub struct NewGroup {
    /// The group that it is in, by its place in [`Setup::groups`], which is before its own; `None`
    /// for the root group.
    pub parent: Option<usize>,
    /// Its weight among what else is in that group, 2 to 262144.
    pub shares: u32,
}

/// What a scheduler is made of.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'s> {
    /// The machine.
    pub machine: &'s Machine,
    /// The kernel's view of it.
    pub topology: &'s Arc<Topology>,
    /// The stock kernel, and the mechanisms in it.
    pub policy: Policy,
    /// Ticks a second, 1 to 10,000.
    pub hz: u32,
    /// The root domain is laid out as the series of 2025 has it, see [`Layouts`].
    pub rearranged: bool,
    /// Every task there will be. A task that never comes to a CPU of this machine (a guest's, say)
    /// keeps its number and costs nothing.
    pub tasks: &'s [NewTask],
    /// The task groups.
    pub groups: &'s [NewGroup],
    /// The sets of CPUs that affinities are made of.
    pub masks: &'s [Arc<CpuMask>],
    /// What the threads of each process share.
    pub spaces: &'s [SharedSet],
    /// The source of all random numbers.
    pub seed: u64,
}

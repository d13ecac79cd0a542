// SPDX-License-Identifier: GPL-2.0-or-later
//! A task as the scheduler has it: its place in its class, the work that is left to it, and where
//! its cached lines are.

use perch_policy::TaskState;

use super::life::Life;
use crate::cache::CacheTask;
use crate::class::rt::RtEntity;
use crate::id::{MaskId, TaskGroupId};

/// A task.
#[derive(Debug)]
pub struct Task {
    /// The policy's state of the task.
    pub state: TaskState,
    /// The task's group, `None` for the root group.
    pub group: Option<TaskGroupId>,
    /// The task's affinity, by its place in [`super::Sched`]'s `affinities`.
    pub affinity: MaskId,
    /// The CPU on which the task runs or ran last.
    pub cpu: usize,
    /// The state that the task is in between its birth and its death.
    pub life: Life,
    /// True for a task whose work is that of others, see [`crate::NewTask::carries`].
    pub carries: bool,
    /// True while the task executes kernel code with interrupts off: it keeps its CPU until the
    /// program clears this.
    pub atomic: bool,
    /// The real-time class's entity.
    pub rt: RtEntity,
    /// The work left of the operation under way, in nanoseconds at full capacity.
    pub left_ns: u64,
    /// The work that the task owes before its next operation, in nanoseconds at full capacity:
    /// wake-ups that it sent, data that it fetched.
    pub debt_ns: u64,
    /// The number of lines of its own that the task finds in its caches when it runs undisturbed.
    pub footprint: u32,
    /// The CPU whose caches hold the task's lines: the one that it last ran on, `None` before
    /// the first.
    pub warm_cpu: Option<u32>,
    /// That CPU's fill counter at the moment at which the task left it.
    pub warm_fill: u64,
    /// The time of the task's wake-up, from which its latency is counted; 0 once it is counted.
    pub woken_ns: u64,
    /// The time at which the task was last woken, or last left a CPU while it was runnable.
    pub waits_since_ns: u64,
    /// The cache mechanism's state of the task.
    pub cache: CacheTask,
}

impl Task {
    /// The CPU where the task's lines are, `None` before the task has run. A word for this number
    /// would make a task as large as 256 bytes, and the processor's multiplication that finds a
    /// task in the list would become two instructions.
    #[inline]
    pub fn warm(&self) -> Option<usize> {
        self.warm_cpu.map(|cpu| cpu as usize)
    }
}

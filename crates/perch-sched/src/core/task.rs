// SPDX-License-Identifier: GPL-2.0-or-later
//! A task as the scheduler has it: its place in its class, what is left of its work, and what its
//! caches hold.

use perch_policy::TaskState;

use super::life::Life;
use crate::cache::CacheTask;
use crate::class::rt::RtEntity;
use crate::id::{MaskId, TaskGroupId};

/// A task.
#[derive(Debug)]
pub struct Task {
    /// What the policy knows and remembers of it.
    pub state: TaskState,
    /// Its group, `NONE` for the root group.
    pub group: Option<TaskGroupId>,
    /// Which of the kernel's affinities it has.
    pub affinity: MaskId,
    /// Where it runs or ran last.
    pub cpu: usize,
    /// Where it is in its life.
    pub life: Life,
    /// Its work is that of others, see [`super::NewTask::carries`].
    pub carries: bool,
    /// It is in a stretch of kernel code with interrupts off: it keeps its CPU until it says
    /// otherwise.
    pub atomic: bool,
    /// Real-time class entity.
    pub rt: RtEntity,
    /// Work left of the operation under way, nanoseconds at full capacity.
    pub left_ns: u64,
    /// Overheads to be paid before the next operation: wake-ups sent, data fetched.
    pub debt_ns: u64,
    /// Lines of its own that it finds in its caches when it runs undisturbed.
    pub footprint: u32,
    /// Where its lines are: the CPU it last ran on, `u32::MAX` before the first time.
    pub warm_cpu: Option<u32>,
    /// That CPU's fill counter when the task left it.
    pub warm_fill: u64,
    /// When it was woken, for the wake-up latency; 0 once that is counted.
    pub woken_ns: u64,
    /// When it last became able to run, or was made to wait.
    pub waits_since_ns: u64,
    /// What the cache mechanism remembers of it.
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

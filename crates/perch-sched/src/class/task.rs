// SPDX-License-Identifier: GPL-2.0-or-later
//! A task as the scheduler has it: its place in its class, the work that is left to it, and where
//! its cached lines are.

use perch_machine::Footprint;
use perch_policy::TaskState;

use super::fair;
use super::rt::RtEntity;
use crate::cache::CacheTask;
use crate::core::Life;
use crate::era::NICE_WEIGHT;
use crate::id::{MaskId, TaskGroupId, TaskId};
use crate::setup::NewTask;

#[derive(Debug)]
pub struct Task {
    /// The policy's state of the task.
    pub state: TaskState,
    /// The task's group, `None` for the root group.
    pub(in crate::class) group: Option<TaskGroupId>,
    /// The task's affinity, by its place in [`crate::Setup::masks`].
    pub(in crate::class) affinity: MaskId,
    /// The CPU on which the task runs or ran last.
    pub(in crate::class) cpu: usize,
    /// The state that the task is in between its birth and its death.
    pub(in crate::class) life: Life,
    /// True for a task whose work is that of others, see [`crate::NewTask::carries`].
    pub carries: bool,
    /// True while the task executes kernel code with interrupts off: it keeps its CPU until the
    /// program clears this.
    pub atomic: bool,
    /// The real-time class's entity.
    pub(in crate::class) rt: RtEntity,
    /// The work left of the operation under way, in nanoseconds at full capacity.
    pub left_ns: u64,
    /// The work that the task owes before its next operation, in nanoseconds at full capacity:
    /// wake-ups that it sent, data that it fetched.
    pub debt_ns: u64,
    /// The lines that the task finds in its caches when it runs undisturbed.
    pub footprint: Footprint,
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
    /// Returns a task that is still to be forked.
    pub(crate) fn new(id: TaskId, spec: &NewTask) -> Task {
        let weight = NICE_WEIGHT[(i32::from(spec.nice) + 20) as usize];
        let mut state = TaskState::new(id.0 + 1);
        state.load = weight;
        state.set_uclamp(spec.uclamp.0, spec.uclamp.1);
        Task {
            state,
            affinity: spec.affinity,
            cpu: 0,
            life: Life::Unborn,
            group: fair::of_task(spec),
            rt: RtEntity::new(spec),
            carries: spec.carries,
            atomic: false,
            left_ns: 0,
            debt_ns: 0,
            footprint: spec.footprint,
            warm_cpu: None,
            warm_fill: 0,
            woken_ns: 0,
            waits_since_ns: 0,
            cache: CacheTask::default(),
        }
    }

    /// Returns the state that the task is in between its birth and its death.
    #[inline]
    pub(crate) fn life(&self) -> Life {
        self.life
    }

    /// Returns the CPU on which the task runs or ran last.
    #[inline]
    pub(crate) fn cpu(&self) -> usize {
        self.cpu
    }

    /// The CPU where the task's lines are, `None` before the task has run. A word for this number
    /// would make a task as large as 256 bytes, and the processor's multiplication that finds a
    /// task in the list would become two instructions.
    #[inline]
    pub fn warm(&self) -> Option<usize> {
        self.warm_cpu.map(|cpu| cpu as usize)
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The tasks and their affinities, for all rooms.

use perch_policy::{CpuMask, TaskState};

use super::RunQueues;
use super::task::Task;
use crate::core::Life;
use crate::id::{MaskId, TaskGroupId, TaskId};

impl RunQueues {
    #[inline]
    pub(crate) fn task(&self, task: TaskId) -> &Task {
        &self.tasks[task]
    }

    /// See [`RunQueues::task`].
    #[inline]
    pub(crate) fn task_mut(&mut self, task: TaskId) -> &mut Task {
        &mut self.tasks[task]
    }

    /// Returns what the policy is asked about: the state of `wakee`, that of another task that wakes
    /// it, and the CPUs that the wakee may use.
    #[inline]
    pub(crate) fn asked(
        &mut self,
        wakee: TaskId,
        waker: Option<TaskId>,
    ) -> (&mut TaskState, Option<&mut TaskState>, &CpuMask) {
        let allowed = &self.affinities[self.tasks[wakee].affinity];
        match waker {
            Some(waker) => {
                let (waker, wakee) = self.tasks.two_mut(waker, wakee);
                (&mut wakee.state, Some(&mut waker.state), allowed)
            }
            None => (&mut self.tasks[wakee].state, None, allowed),
        }
    }

    /// Returns all tasks with their numbers.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = (TaskId, &Task)> {
        self.tasks.named()
    }

    /// Returns the number of tasks.
    pub(crate) fn nr_tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Notes that `task`, which was woken, is on its way to its CPU.
    pub(crate) fn travels(&mut self, task: TaskId) {
        self.tasks[task].life = Life::Waking;
    }

    /// Makes `cpu` the CPU of `task`, which is on no queue.
    pub(crate) fn assign(&mut self, task: TaskId, cpu: usize) {
        self.tasks[task].cpu = cpu;
    }

    /// Puts `task`, which is on no queue, into a task group.
    pub(crate) fn join(&mut self, task: TaskId, group: Option<TaskGroupId>) {
        let t = &mut self.tasks[task];
        t.group = group;
        t.state.set_group(self.fair.joins(group));
    }

    /// Sets the affinity of `task`.
    pub(crate) fn bind(&mut self, task: TaskId, mask: MaskId) {
        self.tasks[task].affinity = mask;
    }
}

/// The tasks' affinities.
impl RunQueues {
    /// Returns the CPUs that `task` may use.
    #[inline]
    pub(crate) fn allowed(&self, task: TaskId) -> &CpuMask {
        &self.affinities[self.tasks[task].affinity]
    }

    /// Returns the CPUs of an affinity.
    #[inline]
    pub(crate) fn mask(&self, mask: MaskId) -> &CpuMask {
        &self.affinities[mask]
    }

    /// Returns whether `task` may use `cpu`.
    #[inline]
    pub(crate) fn may_run_on(&self, task: TaskId, cpu: usize) -> bool {
        self.allowed(task).contains(cpu)
    }
}

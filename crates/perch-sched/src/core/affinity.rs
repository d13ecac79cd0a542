// SPDX-License-Identifier: GPL-2.0-or-later
//! The CPUs that a task may use.

use perch_policy::CpuMask;

use super::Sched;
use crate::id::{MaskId, TaskId};

impl Sched<'_> {
    /// Returns the CPUs that `task` may use.
    pub fn allowed(&self, task: TaskId) -> &CpuMask {
        self.rq.allowed(task)
    }

    /// Returns a set of CPUs that tasks can be bound to, by its place in [`crate::Setup::masks`].
    pub fn mask(&self, mask: MaskId) -> &CpuMask {
        self.rq.mask(mask)
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The CPUs that a task may use.

use perch_policy::CpuMask;

use super::Sched;

impl Sched<'_> {
    /// Returns the CPUs that `task` may use.
    pub fn allowed(&self, task: u32) -> &CpuMask {
        &self.affinities[self.tasks[task as usize].affinity as usize]
    }

    /// Returns a set of CPUs that tasks can be bound to, by its place in [`super::Setup::masks`].
    pub fn mask(&self, mask: u32) -> &CpuMask {
        &self.affinities[mask as usize]
    }

    pub(crate) fn may_run_on(&self, task: u32, cpu: usize) -> bool {
        self.affinities[self.tasks[task as usize].affinity as usize].contains(cpu)
    }
}

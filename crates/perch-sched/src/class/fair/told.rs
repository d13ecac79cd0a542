// SPDX-License-Identifier: GPL-2.0-or-later
//! What the policy has to be told of groups.

use perch_policy::GroupId;

use crate::Violation;
use crate::class::RunQueues;
use crate::id::TaskId;

impl RunQueues {
    /// Returns whether groups have got or lost their only runnable task on a CPU since the caller last
    /// asked for the changes.
    #[inline]
    pub(crate) fn any_told(&self) -> bool {
        !self.fair.groups.told.is_empty()
    }

    /// Takes these changes: a group, a CPU, and whether the group has a runnable task there now.
    pub(crate) fn take_told(&mut self) -> impl Iterator<Item = (GroupId, usize, bool)> {
        self.fair.groups.told.drain(..)
    }

    /// Returns whether the walk over a CPU's groups depends on the run time of its running task up to
    /// now (3.4).
    pub(crate) fn wants_accounts(&self) -> bool {
        self.rules.by_weight() && self.fair.groups.any()
    }

    /// Checks that `task`, which was steered, went to a CPU on which its group has no runnable task.
    pub(crate) fn check_steered(&self, task: TaskId, cpu: usize) -> Result<(), Violation> {
        self.fair.check_steered(self.tasks[task].group, cpu)
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The interrupts and the tasks that are on their way to a CPU, which enqueues these tasks itself.

use crate::id::TaskId;
use std::collections::VecDeque;

/// The interrupts and the tasks that are on their way to a CPU.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// Tasks that the CPU itself enqueues when the interrupt arrives.
    tasks: VecDeque<TaskId>,
    /// True while an interrupt is on its way.
    ipi_pending: bool,
    /// True if that interrupt is to make the CPU reschedule.
    kicked: bool,
}

impl Inbox {
    /// Puts `task` behind the tasks that are on their way.
    pub fn put(&mut self, task: TaskId) {
        self.tasks.push_back(task);
    }

    /// Takes the task that was sent first.
    pub fn take(&mut self) -> Option<TaskId> {
        self.tasks.pop_front()
    }

    /// Returns whether no task is on its way.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Notes that an interrupt is on its way (`true`) or has arrived (`false`). Returns whether one
    /// was on its way before.
    #[inline]
    pub fn tell(&mut self, is: bool) -> bool {
        std::mem::replace(&mut self.ipi_pending, is)
    }

    /// Notes that the CPU is to reschedule at its next interrupt.
    pub fn kick(&mut self) {
        self.kicked = true;
    }

    /// Returns whether the CPU was kicked since this was last asked.
    #[inline]
    pub fn take_kick(&mut self) -> bool {
        std::mem::take(&mut self.kicked)
    }

    /// Returns the tasks that are on their way, in the order in which they were sent.
    pub fn tasks(&self) -> &VecDeque<TaskId> {
        &self.tasks
    }

    /// Returns whether an interrupt is on its way.
    pub fn is_told(&self) -> bool {
        self.ipi_pending
    }
}

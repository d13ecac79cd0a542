// SPDX-License-Identifier: GPL-2.0-or-later
//! The moves of tasks from one queue to another.

use crate::core::Sched;
use crate::id::TaskId;
use crate::observe::Observed;

impl Sched<'_> {
    /// Moves a waiting task from the queue of `from` to that of `to`.
    pub(crate) fn move_waiting(&mut self, task: TaskId, from: usize, to: usize) {
        self.rq.update_current(from);
        assert!(
            self.rq.may_run_on(task, to),
            "task {task} is moved to cpu {to}, which it may not use"
        );
        let delayed = self.rq.is_delayed(task);
        self.rq.detach_waiting(task, from);
        self.count_wish(from, task, -1);
        self.publish(from);
        self.count_as_idle_if_left(from);
        if self.llc(from) != self.llc(to) && !delayed {
            self.reserve(from, -1);
            self.reserve(to, 1);
        }
        self.note_moved(task, from, to);
        self.enqueue(to, task, true);
        if delayed {
            self.rq.delay_moved(to, task);
            self.publish(to);
        } else {
            self.check_preempt(to, task);
        }
        // A CPU that balances for itself looks at its queue next; one that is idle must be told.
        if self.rq.idleness(to).is_idle() {
            self.send_ipi(to, to, 0);
        }
    }

    /// Tells the observers that a task was moved from one CPU's queue to another's.
    pub(crate) fn note_moved(&mut self, task: TaskId, from: usize, to: usize) {
        let distance = self.costs.distance(from, to);
        self.happened(Observed::Balanced { task, from, to, distance });
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The moves of tasks from one queue to another.

use crate::core::Sched;
use crate::hardware::{Access, Field, Symbol};
use crate::id::TaskId;
use crate::observe::Observed;

/// The caller that switches CPUs. The balancer takes a running task off its CPU and knows nothing
/// of how that CPU goes on: another task may run there, or none, or the CPU itself may balance.
pub(crate) trait Vacated {
    /// Lets `cpu`, which runs no task, pick the next one at once. The pass goes on with the queues,
    /// the idle CPUs and the contended lines as they are after that switch.
    fn choose(&mut self, sched: &mut Sched<'_>, cpu: usize);
}

impl Sched<'_> {
    /// Moves a waiting task from the queue of `from` to that of `to`.
    pub(super) fn move_waiting(&mut self, task: TaskId, from: usize, to: usize) {
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
            self.check_preempt(to, task)
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

    /// Moves the running task of `source` to `cpu`, for active balance or exec. Returns whether it
    /// could.
    pub(crate) fn push_running(
        &mut self,
        vacated: &mut dyn Vacated,
        source: usize,
        cpu: usize,
    ) -> bool {
        let Some(task) = self.rq.movable_current(source) else {
            return false;
        };
        if !self.rq.may_run_on(task, cpu) {
            return false;
        }
        if self.rq.runs_ext(source) {
            self.push_running_ext(vacated, source, cpu, task);
            return true;
        }
        // The kernel enqueues the stopper on the CPU of the task that it moves.
        if self.rq.nr(source) == 1 {
            let symbol = Symbol::EnqueueTaskStop;
            self.line(self.acting(), symbol, Field::Overloaded, Access::Load);
        }
        self.stop_segment(source);
        self.leave_caches(source, task);
        self.put(source);
        self.move_waiting(task, source, cpu);
        let here = self.acting();
        self.act_on(source);
        vacated.choose(self, source);
        self.act_on(here);
        true
    }
}

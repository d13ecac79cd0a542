// SPDX-License-Identifier: GPL-2.0-or-later
//! The workload's own clocks: the stopwatch that it is judged by, and timers that tasks share.

use crate::id::{TaskId, TimerId};

use super::{Interpreter, System};

/// The stopwatch of a workload that is judged by how long it takes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stopwatch {
    /// When its measured part began.
    pub started_ns: Option<u64>,
    /// When it was done.
    pub stopped_ns: Option<u64>,
    /// Tasks that have done their part, see [`perch_workload::Op::StopClockAfter`].
    pub arrived: u32,
}

impl Interpreter {
    /// The running task waits for a timer's next moment, if that is still to come. Returns
    /// whether it sleeps.
    pub(super) fn use_timer<S: System>(
        &mut self,
        system: &mut S,
        task: TaskId,
        timer: TimerId,
        period: u64,
        absolute: bool,
    ) -> bool {
        let t = &mut self.threads[task];
        t.pc += 1;
        let next = self.timers.or_default(timer).get_or_insert(t.timer_ns);
        *next += period;
        let at_ns = *next;
        if at_ns > system.now_ns() {
            system.wake_at(task, at_ns);
            return true;
        }
        if !absolute {
            *next = system.now_ns();
        }
        false
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The workload's own clocks: the stopwatch that it is judged by, and timers that tasks share.

use super::{Kernel, kind};
use crate::engine::Event;
use crate::workload::Op;

/// The stopwatch of a workload that is judged by how long it takes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stopwatch {
    /// When its measured part began.
    pub started_ns: Option<u64>,
    /// When it was done.
    pub stopped_ns: Option<u64>,
    /// Tasks that have done their part, see [`crate::workload::Op::StopClockAfter`].
    pub arrived: u32,
}

impl Kernel<'_> {
    /// The running task waits for a timer's next moment, if that is still to come. Returns
    /// whether it sleeps.
    pub(super) fn use_timer(&mut self, cpu: usize, task: u32, op: Op) -> bool {
        let Op::Timer {
            timer,
            period,
            absolute,
        } = op
        else {
            return false;
        };
        let (timer, t) = (timer as usize, &mut self.tasks[task as usize]);
        t.pc += 1;
        if self.timers.len() <= timer {
            self.timers.resize(timer + 1, None);
        }
        let next = self.timers[timer].get_or_insert(t.timer_ns);
        *next += period;
        let at_ns = *next;
        if at_ns > self.now {
            self.sleep_until(cpu, task, at_ns);
            return true;
        }
        if !absolute {
            *next = self.now;
        }
        false
    }

    /// The running task sleeps on a timer.
    pub(super) fn sleep_until(&mut self, cpu: usize, task: u32, at_ns: u64) {
        self.events.push(Event {
            at_ns,
            kind: kind::TIMER,
            key: task,
            tag: 0,
        });
        self.block(cpu, task);
    }
}

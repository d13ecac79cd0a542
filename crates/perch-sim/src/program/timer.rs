// SPDX-License-Identifier: GPL-2.0-or-later
//! Timers that tasks share.

use super::system::System;
use super::thread::{Progress, Thread};
use crate::id::{IdVec, TimerId};

/// All timers of a run, each made when a task first uses it.
#[derive(Debug, Default)]
pub struct Timers {
    /// The moment at which each timer's period under way began, nanoseconds, once it is used.
    periods: IdVec<TimerId, Option<u64>>,
}

impl Timers {
    /// The running task waits until a timer's next period begins, if that is still to come.
    pub fn wait<S: System>(
        &mut self,
        system: &mut S,
        thread: &mut Thread,
        timer: TimerId,
        period: u64,
        absolute: bool,
    ) -> Progress {
        thread.step();
        let next = self.periods.or_default(timer);
        let next = next.get_or_insert(thread.timer_ns);
        *next += period;
        if *next > system.now_ns() {
            system.wake_at(thread.task, *next);
            return Progress::Sleeps;
        }
        if !absolute {
            *next = system.now_ns();
        }
        Progress::Done
    }
}

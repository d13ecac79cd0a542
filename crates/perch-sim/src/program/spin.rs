// SPDX-License-Identifier: GPL-2.0-or-later
//! Tasks that spin by the clock, as schbench's workers do: time counts in which they did not run.

use perch_engine::Dist;

use super::system::System;
use super::thread::{Phase, Progress, Thread};
use crate::id::{IdVec, TaskId};

/// How often a task looks at the clock that it spins by, nanoseconds: more often than anything that
/// is measured there happens.
const CLOCK_NS: u64 = 250_000;

/// The tasks that spin by the clock.
#[derive(Debug, Default)]
pub struct Spins {
    /// By task: the moment until which it spins, nanoseconds.
    until_ns: IdVec<TaskId, u64>,
}

impl Spins {
    /// The running task goes on with spinning until this much time has passed, whether or not it
    /// had a CPU meanwhile.
    pub fn spin<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        thread: &mut Thread,
        time: Dist,
    ) -> Progress {
        let now_ns = system.now_ns();
        let until_ns = self.until_ns.or_default(thread.task);
        if thread.phase == Phase::Fresh {
            thread.phase = Phase::InCall;
            *until_ns = now_ns + thread.sample(time);
        }
        if now_ns >= *until_ns {
            return thread.done();
        }
        // In short stretches: a busy sibling changes the CPU's speed and not the clock.
        let wall_ns = (*until_ns - now_ns).min(CLOCK_NS);
        let work_ns = wall_ns * u64::from(system.speed_1024(cpu)) / 1024;
        system.set_work(thread.task, work_ns.max(1));
        Progress::Works
    }
}

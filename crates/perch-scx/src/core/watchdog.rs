// SPDX-License-Identifier: GPL-2.0-or-later
//! The watchdog: how long tasks wait.

use perch_engine::{IdVec, TaskId};

use super::queues::{Queues, Waits};

pub(super) struct Watchdog {
    /// The time that a task may wait, nanoseconds.
    timeout_ns: u64,
    /// When it looked last, nanoseconds.
    looked_ns: u64,
    /// By task: when it was last enqueued or put back, nanoseconds.
    runnable_since_ns: IdVec<TaskId, u64>,
}

impl Watchdog {
    /// `timeout_ms` is the program's `timeout_ms`.
    pub fn new(nr_tasks: usize, timeout_ms: u32) -> Watchdog {
        let timeout_ms = match timeout_ms {
            0 => 30_000,
            ms => u64::from(ms).min(30_000),
        };
        Watchdog {
            timeout_ns: timeout_ms * 1_000_000,
            looked_ns: 0,
            runnable_since_ns: (0..nr_tasks).map(|_| 0).collect(),
        }
    }

    /// The task waits from now on.
    pub fn runnable(&mut self, task: TaskId, now_ns: u64) {
        self.runnable_since_ns[task] = now_ns;
    }

    /// Looks after the tasks, twice within the time that they may wait.
    ///
    /// # Errors
    /// One has waited for longer.
    pub fn look(&mut self, queues: &Queues, now_ns: u64) -> Result<(), String> {
        if now_ns - self.looked_ns < self.timeout_ns / 2 {
            return Ok(());
        }
        self.looked_ns = now_ns;
        for (task, &since_ns) in self.runnable_since_ns.named() {
            let waited_ns = now_ns - since_ns.min(now_ns);
            if queues.waits(task) != Waits::Nowhere && waited_ns > self.timeout_ns {
                let s = waited_ns as f64 / 1e9;
                return Err(format!("runnable task stall: task {task} did not run for {s:.1} s"));
            }
        }
        Ok(())
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's own work and the time it takes: ticks, and passes of the balancer.
//!
//! On a busy CPU this time is charged to the running task. On an idle CPU, a task that is woken
//! towards it waits until the stretch under way is done: the kernel looks for work after each
//! domain of a newidle pass and after each CPU that it balances for, no earlier. A machine whose
//! `tick_ns` is 0 does all of this in no time.

/// The times at which the stretches of the kernel's own work end that a CPU does while it is idle,
/// in order.
#[derive(Debug, Default)]
pub(crate) struct Chores(Vec<u64>);

impl Chores {
    /// Drops all stretches, because a task runs on the CPU from now on.
    #[inline]
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a stretch of `ns` nanoseconds, which begins when those that the CPU has still to do at
    /// `now_ns` are done.
    pub fn add(&mut self, now_ns: u64, ns: u64) {
        let begin_ns = match self.0.last() {
            Some(&end_ns) if end_ns > now_ns => end_ns,
            _ => {
                self.0.clear();
                now_ns
            }
        };
        self.0.push(begin_ns + ns);
    }

    /// Drops all stretches but the one under way at `now_ns`, if there is one. Returns the time at
    /// which that one ends.
    pub fn drop_all(&mut self, now_ns: u64) -> Option<u64> {
        let end = self.0.iter().copied().find(|&end_ns| end_ns > now_ns);
        self.0.clear();
        end
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The average weight of a group's queue in 3.4.

/// 3.4: what a queue weighed on average, over windows that fold (`update_cfs_load`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    /// Sum of weight times nanoseconds, and nanoseconds.
    load_ns: u64,
    period_ns: u64,
    /// When it was last looked at, and when the queue last weighed anything.
    stamp_ns: u64,
    last_ns: u64,
}

/// `sched_shares_window`.
const WINDOW_NS: u64 = 10_000_000;

impl Window {
    /// Adds the time since the last call, with what the queue weighed. Returns whether its
    /// contribution should be looked at again.
    pub(super) fn advance(&mut self, now_ns: u64, weight: u64) -> bool {
        let mut delta_ns = now_ns - self.stamp_ns;
        // Empty for long: starts over.
        if self.stamp_ns > self.last_ns && now_ns - self.last_ns > 4 * WINDOW_NS {
            (self.load_ns, self.period_ns) = (0, 0);
            delta_ns = WINDOW_NS - 1;
        }
        self.stamp_ns = now_ns;
        self.period_ns += delta_ns;
        if weight > 0 {
            self.last_ns = now_ns;
            self.load_ns += delta_ns * weight;
        }
        self.period_ns > WINDOW_NS || self.period_ns == 0
    }

    pub(super) fn average(&self) -> u64 {
        self.load_ns / (self.period_ns + 1)
    }

    pub(super) fn fold(&mut self) {
        while self.period_ns > WINDOW_NS {
            self.period_ns /= 2;
            self.load_ns /= 2;
        }
    }
}

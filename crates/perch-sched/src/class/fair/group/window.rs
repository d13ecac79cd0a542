// SPDX-License-Identifier: GPL-2.0-or-later
//! The average weight of a group's queue in 3.4.

/// 3.4: the average weight of a queue, over windows that are halved when they fill
/// (`update_cfs_load`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    /// The sum of weight times nanoseconds, and the nanoseconds.
    load_ns: u64,
    period_ns: u64,
    /// The times at which the window was last advanced, and at which the queue last had a weight.
    stamp_ns: u64,
    last_ns: u64,
}

/// `sched_shares_window`.
const WINDOW_NS: u64 = 10_000_000;

impl Window {
    /// Adds the time since the last call, during which the queue had the weight `weight`. Returns
    /// whether the queue's contribution should be computed again.
    pub(super) fn advance(&mut self, now_ns: u64, weight: u64) -> bool {
        let mut delta_ns = now_ns - self.stamp_ns;
        // A queue that was empty for long starts over.
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

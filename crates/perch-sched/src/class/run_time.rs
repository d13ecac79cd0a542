// SPDX-License-Identifier: GPL-2.0-or-later
//! The run time of a task or an entity, as every class accounts it.

/// The run time of a task or an entity, as every class accounts it (`update_curr_common`);
/// nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunTime {
    /// The time since which the run time is not yet accounted.
    pub start_ns: u64,
    pub sum_ns: u64,
}

impl RunTime {
    /// Accounts the time up to `now_ns`, and returns its length in nanoseconds.
    #[inline(always)]
    pub fn account(&mut self, now_ns: u64) -> u64 {
        let delta_ns = now_ns.saturating_sub(self.start_ns);
        if delta_ns > 0 {
            self.start_ns = now_ns;
            self.sum_ns += delta_ns;
        }
        delta_ns
    }
}

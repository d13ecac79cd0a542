// SPDX-License-Identifier: GPL-2.0-or-later
//! A CPU's idle and busy time.

/// A CPU's idle and busy time.
#[derive(Debug)]
pub(crate) struct Idleness {
    /// It runs its idle task.
    idle: bool,
    /// When it became idle last.
    idle_since_ns: u64,
    /// Nanoseconds that it was not idle, as far as they are counted.
    busy_ns: u64,
    /// Since when its busy time is not yet counted.
    busy_since_ns: u64,
    /// Moving average of idle periods, nanoseconds.
    avg_idle_ns: u64,
    /// Half of the ceiling of that average (`max_idle_balance_cost`).
    max_cost_ns: u64,
}

impl Idleness {
    /// Of a CPU on which nothing has run yet.
    pub fn new() -> Idleness {
        Idleness {
            idle: true,
            idle_since_ns: 0,
            busy_ns: 0,
            busy_since_ns: 0,
            avg_idle_ns: 1_000_000,
            max_cost_ns: 500_000,
        }
    }

    /// The passes of the balancer cost a CPU so much in all: half of the longest average.
    pub fn set_max_cost(&mut self, ns: u64) {
        self.max_cost_ns = ns;
    }

    /// The passes cost at least so much.
    pub fn raise_max_cost(&mut self, ns: u64) {
        self.max_cost_ns = self.max_cost_ns.max(ns);
    }

    /// So much idle time was none: the CPU waited for contended lines.
    pub fn add_busy(&mut self, ns: u64) {
        self.busy_ns += ns;
    }

    /// Returns whether the CPU runs its idle task.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.idle
    }

    /// How long the CPU usually is idle, nanoseconds.
    #[inline]
    pub fn avg_idle_ns(&self) -> u64 {
        self.avg_idle_ns
    }

    /// The CPU becomes idle.
    pub fn begin(&mut self, now_ns: u64) {
        self.idle = true;
        self.idle_since_ns = now_ns;
        self.busy_ns += now_ns - self.busy_since_ns;
    }

    /// The CPU is no longer idle.
    pub fn end(&mut self, now_ns: u64) {
        self.idle = false;
        let idle_ns = now_ns - self.idle_since_ns;
        let avg = self.avg_idle_ns as i64;
        let avg = avg + (idle_ns as i64 - avg) / 8;
        self.avg_idle_ns = (avg as u64).min(2 * self.max_cost_ns);
        self.busy_since_ns = now_ns;
    }

    /// The CPU's busy time since this was asked last, nanoseconds; `busy` says that it is busy now.
    pub fn take_busy(&mut self, now_ns: u64, busy: bool) -> u64 {
        if busy {
            self.busy_ns += now_ns - self.busy_since_ns.min(now_ns);
            self.busy_since_ns = now_ns;
        }
        std::mem::take(&mut self.busy_ns)
    }
}

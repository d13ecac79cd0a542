// SPDX-License-Identifier: GPL-2.0-or-later
//! The share of a CPU that real-time tasks leave to others, however long they run.
//!
//! Up to 6.11 the class is throttled: once real-time tasks have run for 950 ms of a second, none
//! runs on that CPU until the second is over, even if no other task wants the CPU
//! (`sched_rt_runtime_us`). Since 6.12 fair tasks have a server: a fair task that has waited until
//! only 50 ms of a second are left goes before the real-time tasks for that time (`fair_server`). Since
//! 7.0 a task of sched_ext does so, too (`ext_server`).
//!
//! Both act at ticks, where the kernel enforces them too. The model simplifies: a period begins for
//! all CPUs at once; unused runtime is not lent to other CPUs (RT_RUNTIME_SHARE, off since 5.10);
//! the server's second begins anew whenever 50 ms have passed without a real-time task, and when a
//! tick finds no fair task waiting.

use crate::era::RtLimit;

/// The period of both limits, in nanoseconds (`sched_rt_period_us`).
pub(super) const PERIOD_NS: u64 = 1_000_000_000;
/// The nanoseconds of it that real-time tasks may use (`sched_rt_runtime_us`).
const RUNTIME_NS: u64 = 950_000_000;
/// The nanoseconds of it that the server gives to fair tasks.
const SERVED_NS: u64 = PERIOD_NS - RUNTIME_NS;

/// The state of the limits on one CPU.
#[derive(Debug, Default)]
pub struct Limit {
    /// Throttling: the time that real-time tasks ran in this period, in nanoseconds.
    used_ns: u64,
    /// True if no real-time task runs on the CPU until the period is over.
    throttled: bool,
    /// Server: true while fair tasks go first.
    serves: bool,
    /// The nanoseconds that the server has still to give in this period.
    left_ns: u64,
    /// The time by which the server has to give them.
    deadline_ns: u64,
    /// The time since which no real-time task runs on the CPU.
    free_since_ns: u64,
}

impl Limit {
    /// Returns whether no real-time task runs on the CPU until the period is over.
    #[inline]
    pub fn is_throttled(&self) -> bool {
        self.throttled
    }

    /// Returns whether fair tasks go before the real-time tasks.
    #[inline]
    pub fn serves(&self) -> bool {
        self.serves
    }

    /// Notes that a real-time task takes the CPU over from another class.
    pub fn starts(&mut self, now_ns: u64) {
        self.serves = false;
        self.left_ns = self.left_ns.saturating_sub(now_ns - self.free_since_ns);
        if self.left_ns == 0 || now_ns > self.deadline_ns {
            (self.left_ns, self.deadline_ns) = (SERVED_NS, now_ns + PERIOD_NS);
        }
    }

    /// Notes that the CPU goes from a real-time task to another class.
    pub fn stops(&mut self, now_ns: u64) {
        self.free_since_ns = now_ns;
    }

    /// Notes that a real-time task ran for `ns` nanoseconds.
    pub fn runs(&mut self, rule: RtLimit, ns: u64) {
        if rule == RtLimit::Throttle {
            self.used_ns += ns;
        }
    }

    /// Handles a tick that finds a real-time task running; `waiting` says that a fair task waits.
    /// Returns whether the real-time tasks have had their share, so that the CPU has to pick again.
    pub fn tick(&mut self, rule: RtLimit, now_ns: u64, waiting: bool) -> bool {
        match rule {
            RtLimit::Throttle => self.throttled = self.used_ns > RUNTIME_NS,
            RtLimit::Server if !waiting => {
                (self.left_ns, self.deadline_ns) = (SERVED_NS, now_ns + PERIOD_NS);
            }
            RtLimit::Server => self.serves = now_ns + self.left_ns >= self.deadline_ns,
        }
        self.throttled || self.serves
    }

    /// Handles a tick that finds a fair task running that the server put there. Returns whether the
    /// fair tasks have had their share, so that real-time tasks go first again.
    pub fn served(&mut self, now_ns: u64) -> bool {
        let over = now_ns - self.free_since_ns >= self.left_ns;
        if over {
            self.serves = false;
            self.free_since_ns = now_ns;
            (self.left_ns, self.deadline_ns) = (SERVED_NS, self.deadline_ns + PERIOD_NS);
        }
        over
    }

    /// Begins the class's next period. Returns whether this ends the throttling of the CPU.
    pub fn renew(&mut self) -> bool {
        self.used_ns = self.used_ns.saturating_sub(RUNTIME_NS);
        let freed = self.throttled && self.used_ns <= RUNTIME_NS;
        self.throttled &= !freed;
        freed
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! What real-time tasks leave to others, however long they run.
//!
//! Up to 6.11 the class is throttled: after 950 ms of a second's 1000 no real-time task runs on
//! that CPU until the second is over, whether anybody else wants it or not
//! (`sched_rt_runtime_us`). Since 6.12 fair tasks have a server: who has waited so long that 50 ms
//! in a second are only just left goes before the real-time tasks for that long (`fair_server`).
//!
//! Both act at ticks, where the kernel enforces them too. Simplified: a period begins for all CPUs
//! at once; unused runtime is not lent to other CPUs (RT_RUNTIME_SHARE, off since 5.10); the
//! server's second begins anew whenever 50 ms have passed without a real-time task, and when a
//! tick finds no fair task waiting.

use crate::era::RtLimit;

/// The second in which both keep their books, nanoseconds (`sched_rt_period_us`).
pub(super) const PERIOD_NS: u64 = 1_000_000_000;
/// What real-time tasks may have of it (`sched_rt_runtime_us`).
const RUNTIME_NS: u64 = 950_000_000;
/// What fair tasks are served of it.
const SERVED_NS: u64 = PERIOD_NS - RUNTIME_NS;

/// What one CPU keeps of it.
#[derive(Debug, Default)]
pub struct Limit {
    /// Throttled: the time that real-time tasks ran in this period, nanoseconds.
    used_ns: u64,
    /// No real-time task runs here until the period is over.
    throttled: bool,
    /// Server: fair tasks go first.
    serves: bool,
    /// What the server has still to give, nanoseconds.
    left_ns: u64,
    /// By when.
    deadline_ns: u64,
    /// Since when no real-time task runs here.
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

    /// A real-time task takes the CPU over from another class.
    pub fn starts(&mut self, now_ns: u64) {
        self.serves = false;
        self.left_ns = self.left_ns.saturating_sub(now_ns - self.free_since_ns);
        if self.left_ns == 0 || now_ns > self.deadline_ns {
            (self.left_ns, self.deadline_ns) = (SERVED_NS, now_ns + PERIOD_NS);
        }
    }

    /// The CPU goes from a real-time task to another class.
    pub fn stops(&mut self, now_ns: u64) {
        self.free_since_ns = now_ns;
    }

    /// A real-time task ran for `ns`.
    pub fn runs(&mut self, rule: RtLimit, ns: u64) {
        if rule == RtLimit::Throttle {
            self.used_ns += ns;
        }
    }

    /// A tick finds a real-time task running; `waiting` says that a fair task waits. Returns whether
    /// the real-time tasks have had their share, so that the CPU has to choose again.
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

    /// A tick finds a fair task running that the server put there. Returns whether the fair tasks have
    /// had their share, so that real-time tasks go first again.
    pub fn served(&mut self, now_ns: u64) -> bool {
        let over = now_ns - self.free_since_ns >= self.left_ns;
        if over {
            self.serves = false;
            self.free_since_ns = now_ns;
            (self.left_ns, self.deadline_ns) = (SERVED_NS, self.deadline_ns + PERIOD_NS);
        }
        over
    }

    /// The class's period is over. Returns whether the CPU was throttled and is no longer.
    pub fn renew(&mut self) -> bool {
        self.used_ns = self.used_ns.saturating_sub(RUNTIME_NS);
        let freed = self.throttled && self.used_ns <= RUNTIME_NS;
        self.throttled &= !freed;
        freed
    }
}

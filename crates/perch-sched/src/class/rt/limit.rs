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

use crate::core::Sched;
use crate::era::RtLimit;

/// The second in which both keep their books, nanoseconds (`sched_rt_period_us`).
const PERIOD_NS: u64 = 1_000_000_000;
/// What real-time tasks may have of it (`sched_rt_runtime_us`).
const RUNTIME_NS: u64 = 950_000_000;
/// What fair tasks are served of it.
const SERVED_NS: u64 = PERIOD_NS - RUNTIME_NS;

/// What one CPU keeps of it.
#[derive(Debug, Default)]
pub struct Limit {
    /// Throttled: real-time time of this period, nanoseconds.
    used_ns: u64,
    /// No real-time task runs here until the period is over.
    pub(super) throttled: bool,
    /// Server: fair tasks go first.
    pub(super) serves: bool,
    /// What the server has still to give, nanoseconds.
    left_ns: u64,
    /// By when.
    deadline_ns: u64,
    /// Since when no real-time task runs here.
    free_since_ns: u64,
}

impl Sched<'_> {
    /// Whether real-time tasks of this CPU's queue may run now.
    #[inline]
    pub(super) fn rt_may_run(&self, cpu: usize) -> bool {
        let limit = &self.cpus[cpu].rt.limit;
        !(limit.throttled || limit.serves && self.waits_below_rt(cpu))
    }

    /// A real-time task takes the CPU over from another class.
    pub(super) fn limit_starts(&mut self, cpu: usize) {
        let now = self.now;
        let limit = &mut self.cpus[cpu].rt.limit;
        limit.serves = false;
        limit.left_ns = limit.left_ns.saturating_sub(now - limit.free_since_ns);
        if limit.left_ns == 0 || now > limit.deadline_ns {
            (limit.left_ns, limit.deadline_ns) = (SERVED_NS, now + PERIOD_NS);
        }
    }

    /// The CPU goes from a real-time task to another class.
    pub(super) fn limit_stops(&mut self, cpu: usize) {
        self.cpus[cpu].rt.limit.free_since_ns = self.now;
    }

    /// A real-time task ran for so long.
    pub(super) fn limit_runs(&mut self, cpu: usize, ns: u64) {
        if self.rules.rt_limit == RtLimit::Throttle {
            self.cpus[cpu].rt.limit.used_ns += ns;
        }
    }

    /// A tick finds a real-time task running: is it enough?
    pub(super) fn limit_ticks(&mut self, cpu: usize) {
        let now = self.now;
        let waiting = self.waits_below_rt(cpu);
        let c = &mut self.cpus[cpu];
        let limit = &mut c.rt.limit;
        match self.rules.rt_limit {
            RtLimit::Throttle => limit.throttled = limit.used_ns > RUNTIME_NS,
            RtLimit::Server if !waiting => {
                (limit.left_ns, limit.deadline_ns) = (SERVED_NS, now + PERIOD_NS);
            }
            RtLimit::Server => limit.serves = now + limit.left_ns >= limit.deadline_ns,
        }
        if limit.throttled || limit.serves {
            c.need_resched = true;
            self.counts.rt.limited += 1;
        }
        if limit.throttled {
            c.rt.count();
            self.publish(cpu);
        }
    }

    /// A tick finds a fair task running that the server put there: has it had its share?
    #[inline(never)]
    pub(super) fn limit_served(&mut self, cpu: usize) {
        let now = self.now;
        let c = &mut self.cpus[cpu];
        let limit = &mut c.rt.limit;
        if now - limit.free_since_ns >= limit.left_ns {
            limit.serves = false;
            limit.free_since_ns = now;
            (limit.left_ns, limit.deadline_ns) = (SERVED_NS, limit.deadline_ns + PERIOD_NS);
            c.need_resched |= !c.rt.runnable.is_empty();
        }
    }

    /// At a tick: the period may be over, and with it what real-time tasks have used of theirs.
    #[inline(never)]
    pub(super) fn limit_period(&mut self) {
        if self.rules.rt_limit != RtLimit::Throttle || self.now < self.rt_domain().period_ns {
            return;
        }
        self.rt_domain_mut().period_ns = self.now + PERIOD_NS;
        for cpu in 0..self.cpus.len() {
            let limit = &mut self.cpus[cpu].rt.limit;
            limit.used_ns = limit.used_ns.saturating_sub(RUNTIME_NS);
            if !limit.throttled || limit.used_ns > RUNTIME_NS {
                continue;
            }
            limit.throttled = false;
            self.cpus[cpu].rt.count();
            self.publish(cpu);
            if self.cpus[cpu].rt.runnable.is_empty() {
                continue;
            }
            self.host.set_idle(cpu, false);
            match self.cpus[cpu].current {
                Some(_) => self.cpus[cpu].need_resched = true,
                None => self.send_ipi(cpu, cpu, 0),
            }
        }
    }
}

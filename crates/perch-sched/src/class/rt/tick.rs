// SPDX-License-Identifier: GPL-2.0-or-later
//! The real-time class's work at ticks and at periodic passes: it leaves the other classes their
//! share of a CPU, and records what it uses of the CPU.

use super::limit::PERIOD_NS;
use crate::core::Sched;
use crate::era::RtLimit;
use crate::observe::Observed;

impl Sched<'_> {
    /// Does the class's work of a tick that concerns all CPUs, before the work of each CPU.
    #[inline]
    pub(crate) fn tick_all(&mut self) {
        if self.rq.rt.is_some() {
            self.limit_period();
        }
    }

    /// Handles a tick that found a task of a lower class running, which may have been served its
    /// share.
    #[inline]
    pub(in crate::class) fn tick_below(&mut self, cpu: usize) {
        if self.rq.cpus[cpu].rt.limit.serves() {
            self.limit_served(cpu);
        }
    }

    /// Records, at a periodic pass over the lowest domain of `cpu`, the capacity that real-time
    /// tasks leave of the CPU (`scale_rt_capacity`).
    #[inline]
    pub(crate) fn scale_capacity(&mut self, cpu: usize) {
        if self.rq.rt.is_some() {
            self.update_capacity(cpu);
        }
    }

    fn update_capacity(&mut self, cpu: usize) {
        self.touch_rt(cpu);
        let used = self.rq.cpus[cpu].rt.average.util;
        let all = self.host.topology().capacity(cpu);
        self.host.cpu_mut(cpu).capacity = all.saturating_sub(used).max(1);
    }

    /// Handles a tick that finds a real-time task running, which may have had the share of its
    /// class.
    pub(super) fn limit_ticks(&mut self, cpu: usize) {
        let waiting = self.waits_below_rt(cpu);
        let c = &mut self.rq.cpus[cpu];
        if c.rt
            .limit
            .tick(self.rq.rules.rt_limit, self.rq.now, waiting)
        {
            c.need_resched = true;
            self.happened(Observed::RtLimited { cpu });
        }
        let c = &mut self.rq.cpus[cpu];
        if c.rt.limit.is_throttled() {
            c.rt.count();
            self.publish(cpu);
        }
    }

    /// Handles a tick that finds a fair task running that the server put there.
    #[inline(never)]
    fn limit_served(&mut self, cpu: usize) {
        let c = &mut self.rq.cpus[cpu];
        if c.rt.limit.served(self.rq.now) {
            c.need_resched |= !c.rt.runnable.is_empty();
        }
    }

    /// Ends the class's period, if it is over at this tick, and with it what real-time tasks have
    /// used of their share.
    #[inline(never)]
    fn limit_period(&mut self) {
        if self.rq.rules.rt_limit != RtLimit::Throttle || self.rq.now < self.rt_domain().period_ns {
            return;
        }
        self.rt_domain_mut().period_ns = self.rq.now + PERIOD_NS;
        for cpu in 0..self.rq.cpus.len() {
            if !self.rq.cpus[cpu].rt.limit.renew() {
                continue;
            }
            self.rq.cpus[cpu].rt.count();
            self.publish(cpu);
            if self.rq.cpus[cpu].rt.runnable.is_empty() {
                continue;
            }
            self.host.set_idle(cpu, false);
            match self.rq.cpus[cpu].current {
                Some(_) => self.rq.cpus[cpu].need_resched = true,
                None => self.send_ipi(cpu, cpu, 0),
            }
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! What the real-time class does at ticks and at periodic passes: it leaves others their share of a
//! CPU, and writes down what it uses of one.

use super::limit::PERIOD_NS;
use crate::core::Sched;
use crate::era::RtLimit;

impl Sched<'_> {
    /// At a tick, before any CPU's own.
    #[inline]
    pub(crate) fn tick_all(&mut self) {
        if self.rt.is_some() {
            self.limit_period();
        }
    }

    /// A tick found a task of a class below running, which may have been served its share.
    #[inline]
    pub(in crate::class) fn tick_below(&mut self, cpu: usize) {
        if self.cpus[cpu].rt.limit.serves() {
            self.limit_served(cpu);
        }
    }

    /// A periodic pass over a CPU's lowest domain writes down what real-time tasks leave of the CPU
    /// (`scale_rt_capacity`).
    #[inline]
    pub(crate) fn scale_capacity(&mut self, cpu: usize) {
        if self.rt.is_some() {
            self.update_capacity(cpu);
        }
    }

    fn update_capacity(&mut self, cpu: usize) {
        self.touch_rt(cpu);
        let used = self.cpus[cpu].rt.average.util;
        let all = self.host.topology().capacity(cpu);
        self.host.cpu_mut(cpu).capacity = all.saturating_sub(used).max(1);
    }

    /// A tick finds a real-time task running, which may have had the share of its class.
    pub(super) fn limit_ticks(&mut self, cpu: usize) {
        let waiting = self.waits_below_rt(cpu);
        let c = &mut self.cpus[cpu];
        if c.rt.limit.tick(self.rules.rt_limit, self.now, waiting) {
            c.need_resched = true;
            self.counts.rt.limited += 1;
        }
        if c.rt.limit.is_throttled() {
            c.rt.count();
            self.publish(cpu);
        }
    }

    /// A tick finds a fair task running that the server put there.
    #[inline(never)]
    fn limit_served(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        if c.rt.limit.served(self.now) {
            c.need_resched |= !c.rt.runnable.is_empty();
        }
    }

    /// At a tick: the period may be over, and with it what real-time tasks have used of theirs.
    #[inline(never)]
    fn limit_period(&mut self) {
        if self.rules.rt_limit != RtLimit::Throttle || self.now < self.rt_domain().period_ns {
            return;
        }
        self.rt_domain_mut().period_ns = self.now + PERIOD_NS;
        for cpu in 0..self.cpus.len() {
            if !self.cpus[cpu].rt.limit.renew() {
                continue;
            }
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

// SPDX-License-Identifier: GPL-2.0-or-later
//! The real-time class's work at ticks and at periodic passes: it leaves the other classes their
//! share of a CPU, and records what it uses of the CPU.

use super::limit::PERIOD_NS;
use crate::class::RunQueues;
use crate::era::RtLimit;

impl RunQueues {
    /// Handles a tick that found a task of a lower class running, which may have been served its
    /// share.
    #[inline]
    pub(in crate::class) fn tick_below(&mut self, cpu: usize) {
        if self.cpus[cpu].rt.limit.serves() {
            self.limit_served(cpu);
        }
    }

    /// Returns the utilisation of `cpu` by real-time tasks, which they take from others; `None` if
    /// there are no such tasks.
    #[inline]
    pub(crate) fn rt_util(&mut self, cpu: usize) -> u32 {
        self.touch_rt(cpu);
        self.cpus[cpu].rt.average.util
    }

    /// Returns whether the machine has real-time tasks.
    #[inline]
    pub(crate) fn has_rt(&self) -> bool {
        self.rt.is_some()
    }

    /// Handles a tick that finds a real-time task running, which may have had the share of its
    /// class. Returns whether it has.
    pub(super) fn limit_ticks(&mut self, cpu: usize) -> bool {
        let waiting = self.waits_below_rt(cpu);
        let c = &mut self.cpus[cpu];
        let limited = c.rt.limit.tick(self.rules.rt_limit, self.now, waiting);
        c.need_resched |= limited;
        if c.rt.limit.is_throttled() {
            c.rt.count();
        }
        limited
    }

    /// Handles a tick that finds a fair task running that the server put there.
    #[inline(never)]
    fn limit_served(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        if c.rt.limit.served(self.now) {
            c.need_resched |= !c.rt.runnable.is_empty();
        }
    }

    /// Ends the class's period, if it is over at this tick. Returns whether it was: each CPU then
    /// begins a new one, see [`RunQueues::renew_rt`].
    #[inline]
    pub(crate) fn ends_rt_period(&mut self) -> bool {
        let (now, rule) = (self.now, self.rules.rt_limit);
        let Some(domain) = &mut self.rt else {
            return false;
        };
        if rule != RtLimit::Throttle || now < domain.period_ns {
            return false;
        }
        domain.period_ns = now + PERIOD_NS;
        true
    }

    /// Begins a new period on `cpu`. Returns whether that ends the class's throttling there. A
    /// running task is asked to give way to the tasks that may run again.
    pub(crate) fn renew_rt(&mut self, cpu: usize) -> bool {
        let c = &mut self.cpus[cpu];
        if !c.rt.limit.renew() {
            return false;
        }
        c.rt.count();
        c.need_resched |= c.current.is_some() && !c.rt.runnable.is_empty();
        true
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The tick.

use super::{Programs, Sched, kind};
use crate::observe::Observed;

impl Sched<'_> {
    /// Handles the tick of all CPUs, which falls on the same moment on each (the kernel's default).
    /// An idle CPU has none: without a cpuidle driver, as on most servers with one idle state, the
    /// tick stops on every entry.
    pub fn tick(&mut self, programs: &mut dyn Programs) {
        self.tick_all();
        for cpu in 0..self.cpus.len() {
            self.act_on(cpu);
            let Some(task) = self.rq.current(cpu) else {
                self.tick_idle(cpu);
                continue;
            };
            self.happened(Observed::Ticked { cpu });
            self.tick_current(cpu, task);
            if self.rules.by_weight() {
                self.tick_weights(cpu);
            }
            if self.caches.is_on() {
                self.tick_cache(cpu);
            }
            let mut spent = self.costs.tick_ns();
            if self.rq.balances() && self.is_balance_due(cpu) {
                spent += self.balance_due(programs, cpu, false);
            }
            self.take_time(cpu, spent);
            self.resched_if_needed(programs, cpu);
        }
        if self.rq.balances() {
            self.balance_sleepers(programs);
        }
        let next_ns = self.rq.now() + self.rq.tick_ns();
        self.at(next_ns, kind::TICK, 0, 0);
    }

    /// Charges the running task of `cpu` `ns` nanoseconds of the kernel's own work.
    pub fn take_time(&mut self, cpu: usize, ns: u64) {
        let Some(task) = self.rq.current(cpu) else {
            return;
        };
        if self.costs.tick_ns() == 0 {
            return;
        }
        self.stop_segment(cpu);
        self.charge_kernel(cpu, task, ns);
        self.begin_segment(cpu);
    }

    /// Handles the tick of an idle CPU, unless its tick is stopped: the governor keeps the tick
    /// while it expects the next wake-up to come before it.
    pub(super) fn tick_idle(&mut self, cpu: usize) {
        if self.rq.idleness(cpu).is_idle()
            && self.rq.idleness(cpu).avg_idle_ns() < self.rq.tick_ns()
        {
            self.add_chore(cpu, self.costs.tick_ns());
        }
    }
}

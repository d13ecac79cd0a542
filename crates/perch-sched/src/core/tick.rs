// SPDX-License-Identifier: GPL-2.0-or-later
//! The tick.

use super::{Programs, Sched, kind};

impl Sched<'_> {
    /// Every CPU's tick. Ticks of all CPUs fall on the same moment (the kernel's default). An idle
    /// CPU has none: without a cpuidle driver, as on most servers with one idle state, the tick
    /// stops on every entry.
    pub fn tick(&mut self, programs: &mut dyn Programs) {
        self.tick_all();
        for cpu in 0..self.cpus.len() {
            self.acting = cpu;
            let Some(task) = self.cpus[cpu].current else {
                self.tick_idle(cpu);
                continue;
            };
            self.counts.ticks += 1;
            self.tick_current(cpu, task);
            if self.rules.balance.by_weight {
                self.tick_weights(cpu);
            }
            if self.caches.is_on() {
                self.tick_cache(cpu);
            }
            let mut spent = self.costs.tick_ns();
            if self.is_balance_due(cpu) {
                spent += self.balance_due(programs, cpu, false);
            }
            self.take_time(cpu, spent);
            self.resched_if_needed(programs, cpu);
        }
        self.balance_sleepers(programs);
        let next_ns = self.now + self.tick_ns;
        self.at(next_ns, kind::TICK, 0, 0);
    }
}

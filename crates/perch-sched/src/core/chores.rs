// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's own work and the time it takes: ticks, and passes of the balancer.
//!
//! On a busy CPU it takes the time from whoever runs there. On an idle one, a task that is woken
//! towards it waits until the stretch under way is done: the kernel looks for work after each
//! domain of a newidle pass and after each CPU that it balances for, no earlier. A machine whose
//! `tick_ns` is 0 does all of this in no time.

use super::{Sched, kind};

/// When the stretches of the kernel's own work end that a CPU does while it is idle, in order.
#[derive(Debug, Default)]
pub(crate) struct Chores(Vec<u64>);

impl Chores {
    /// Somebody runs: what was left is left out.
    #[inline]
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl Sched<'_> {
    /// A busy CPU spends so long on the kernel's own account.
    pub fn take_time(&mut self, cpu: usize, ns: u64) {
        let Some(task) = self.cpus[cpu].current else {
            return;
        };
        if self.costs.tick_ns() == 0 {
            return;
        }
        self.stop_segment(cpu);
        self.charge_kernel(cpu, task, ns);
        self.begin_segment(cpu);
    }

    /// An idle CPU's tick, unless that is stopped: the governor keeps it while it expects the
    /// next wake-up to come before.
    pub(super) fn tick_idle(&mut self, cpu: usize) {
        if self.is_asleep(cpu) && self.avg_idle_ns(cpu) < self.tick_ns {
            self.add_chore(cpu, self.costs.tick_ns());
        }
    }

    /// Another stretch of such work for an idle CPU, after those that it has still to do.
    pub(crate) fn add_chore(&mut self, cpu: usize, ns: u64) {
        if self.costs.tick_ns() == 0 {
            return;
        }
        let (now, chores) = (self.now, &mut self.cpus[cpu].chores.0);
        let begin_ns = match chores.last() {
            Some(&end_ns) if end_ns > now => end_ns,
            _ => {
                chores.clear();
                now
            }
        };
        chores.push(begin_ns + ns);
    }

    /// An interrupt comes to a CPU that may be at such work. Returns whether it has to wait; then
    /// it comes again when the stretch under way is done. Those that follow are dropped.
    pub fn finish_chore(&mut self, cpu: usize) -> bool {
        let (now, c) = (self.now, &mut self.cpus[cpu]);
        let end = c.chores.0.iter().copied().find(|&end_ns| end_ns > now);
        c.chores.clear();
        let Some(at_ns) = end.filter(|_| c.current.is_none()) else {
            return false;
        };
        self.at(at_ns, kind::IPI, cpu as u32, 0);
        true
    }
}

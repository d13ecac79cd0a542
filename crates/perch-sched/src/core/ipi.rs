// SPDX-License-Identifier: GPL-2.0-or-later
//! Interrupts that CPUs send one another.

use super::{Sched, kind};

impl Sched<'_> {
    /// Sends an interrupt to `cpu`, unless one is on its way already. The sender `from` sends it in
    /// `after_ns` nanoseconds, which it needs to get that far.
    pub(crate) fn send_ipi(&mut self, cpu: usize, from: usize, after_ns: u64) {
        if self.cpus[cpu].inbox.tell(true) {
            return;
        }
        let mut delay = after_ns + self.waited_ns(from);
        if cpu != from {
            delay += self.costs.ipi_ns(from, cpu);
        }
        if self.rq.current(cpu).is_none() {
            delay += u64::from(self.host.cpu(cpu).idle_exit_ns);
        }
        // An idle sender handles an interrupt itself, which had to wake it from its idle state
        // first.
        if cpu != from && self.rq.idleness(from).is_idle() {
            delay += u64::from(self.host.cpu(from).idle_exit_ns);
        }
        let at_ns = self.rq.now() + delay;
        self.at(at_ns, kind::IPI, cpu as u32, 0);
    }
}

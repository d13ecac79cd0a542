// SPDX-License-Identifier: GPL-2.0-or-later
//! Interrupts that CPUs send one another.

use super::{Programs, Sched, kind};

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

    /// Has the overloaded CPUs push their tasks, one after the other.
    pub(crate) fn ask_push(&mut self) {
        let here = self.acting;
        self.rq.ask_push();
        self.apply();
        let now = self.rq.now();
        if !self.rq.may_begin_round(now + self.waited_ns(here)) {
            return;
        }
        let to = self.rq.begin_round();
        self.apply();
        self.rq.hold_round(now + self.waited_ns(here));
        self.send_round(to);
    }

    /// Handles the interrupt that asks `cpu` to push, and passes it on.
    #[cold]
    pub fn push_interrupt(&mut self, programs: &mut dyn Programs, cpu: usize) {
        self.end_streak(cpu);
        let pushes = self.rq.take_round(cpu);
        self.apply();
        if pushes {
            self.push_rt(cpu);
        }
        let to = self.rq.pass_round();
        self.apply();
        self.send_round(to);
        self.resched_if_needed(programs, cpu);
    }

    /// Sends the interrupt of a round to `to`, if there is such a CPU.
    fn send_round(&mut self, to: Option<usize>) {
        let (Some(to), from) = (to, self.acting) else {
            return;
        };
        let mut delay = self.waited_ns(from);
        if to != from {
            delay += self.costs.ipi_ns(from, to);
        }
        if self.rq.current(to).is_none() {
            delay += u64::from(self.host.cpu(to).idle_exit_ns);
        }
        self.at(self.rq.now() + delay, kind::PUSH, to as u32, 0);
    }
}

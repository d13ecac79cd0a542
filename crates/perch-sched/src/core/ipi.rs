// SPDX-License-Identifier: GPL-2.0-or-later
//! Interrupts that CPUs send one another.

use perch_policy::Change;

use super::later::Due;
use super::{Sched, kind};

impl Sched<'_> {
    /// Sends an interrupt to `cpu`, unless one is on its way already. The sender `from` sends it in
    /// `after_ns` nanoseconds, which it needs to get that far.
    pub(crate) fn send_ipi(&mut self, cpu: usize, from: usize, after_ns: u64) {
        if self.cpus[cpu].inbox.tell(true) {
            return;
        }
        let mut delay = after_ns + self.way_ns(cpu, from);
        // An idle sender handles an interrupt itself, which had to wake it from its idle state
        // first.
        if cpu != from && self.rq.idleness(from).is_idle() {
            delay += u64::from(self.host.cpu(from).idle_exit_ns);
        }
        let at_ns = self.rq.now() + delay;
        self.at(at_ns, kind::IPI, cpu as u32, 0);
        let listed = cpu != from && !self.cpus[cpu].inbox.is_empty();
        if !self.rules.has(Change::PendingUntilQueued) && listed {
            let begins_ns = at_ns.saturating_sub(self.costs.wake_ns(0) / 2);
            self.later.add(begins_ns, Due::Unlisted(cpu));
        }
    }

    /// Lets others see `cpu` idle again, which clears the flag that wakees are on its list
    /// (`ttwu_pending`) before it enqueues them. That is half of a wake-up's work.
    pub(super) fn take_off_list(&mut self, cpu: usize) {
        if self.takes_off_list(cpu) {
            self.host.set_idle(cpu, true);
        }
    }

    /// Returns whether `cpu` is idle but for wakees on its list, where others may see it so.
    pub(crate) fn takes_off_list(&self, cpu: usize) -> bool {
        let idle = self.rq.current(cpu).is_none() && self.rq.nr(cpu) == 0;
        let busy = self.leaves_for_ns(cpu) > 0 || self.searches_for_task(cpu);
        let listed = !self.cpus[cpu].inbox.is_empty();
        !self.rules.has(Change::PendingUntilQueued) && idle && !busy && listed
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

    /// Sends the interrupt of a round to `to`, if there is such a CPU.
    pub(super) fn send_round(&mut self, to: Option<usize>) {
        if let Some(to) = to {
            let at_ns = self.rq.now() + self.way_ns(to, self.acting);
            self.at(at_ns, kind::PUSH, to as u32, 0);
        }
    }

    /// Returns how many nanoseconds an interrupt takes from `from`, once it has the lines that it
    /// waits for, to the first instruction of its handler on `cpu`.
    #[inline]
    fn way_ns(&self, cpu: usize, from: usize) -> u64 {
        let mut way_ns = self.waited_ns(from);
        if cpu != from {
            way_ns += self.costs.ipi_ns(from, cpu);
        }
        if self.rq.current(cpu).is_none() {
            way_ns += u64::from(self.host.cpu(cpu).idle_exit_ns);
        }
        way_ns
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! What is on its way to a CPU: interrupts, and tasks that were woken from afar.

use std::collections::VecDeque;

use super::{Programs, Sched, kind};

/// What is on its way to a CPU.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// Tasks that the CPU itself enqueues when the interrupt arrives.
    tasks: VecDeque<u32>,
    /// An interrupt is on its way.
    ipi_pending: bool,
}

impl Inbox {
    /// A task was sent to the CPU.
    pub fn put(&mut self, task: u32) {
        self.tasks.push_back(task);
    }

    /// The tasks on their way.
    pub fn tasks(&self) -> &VecDeque<u32> {
        &self.tasks
    }

    /// Whether an interrupt is on its way.
    pub fn is_told(&self) -> bool {
        self.ipi_pending
    }
}

impl Sched<'_> {
    /// Whether tasks are on their way to a CPU.
    #[inline]
    pub(crate) fn awaits_tasks(&self, cpu: usize) -> bool {
        !self.cpus[cpu].inbox.tasks.is_empty()
    }

    /// Sends an interrupt in `after_ns`, when the sender has got that far, unless one is on its
    /// way already.
    pub(crate) fn send_ipi(&mut self, cpu: usize, from: usize, after_ns: u64) {
        if self.cpus[cpu].inbox.ipi_pending {
            return;
        }
        self.cpus[cpu].inbox.ipi_pending = true;
        let mut delay = after_ns + self.waited_ns(from);
        if cpu != from {
            delay += self.costs.ipi_ns(from, cpu);
        }
        if self.cpus[cpu].current.is_none() {
            delay += u64::from(self.host.cpu(cpu).idle_exit_ns);
        }
        // An interrupt on an idle CPU had to wake that CPU first.
        if cpu != from && self.is_asleep(from) {
            delay += u64::from(self.host.cpu(from).idle_exit_ns);
        }
        let at_ns = self.now + delay;
        self.at(at_ns, kind::IPI, cpu as u32, 0);
    }

    /// An interrupt arrives: enqueue the tasks that were sent here, then reschedule if need be.
    pub fn interrupt(&mut self, programs: &mut dyn Programs, cpu: usize) {
        self.cpus[cpu].inbox.ipi_pending = false;
        while let Some(task) = self.cpus[cpu].inbox.tasks.pop_front() {
            self.enqueue(cpu, task, false);
            self.check_preempt(cpu, task);
        }
        if self.cpus[cpu].current.is_none() {
            if self.nr(cpu) > 0 {
                self.schedule(programs, cpu);
            } else {
                self.host.set_idle(cpu, true);
            }
        } else {
            self.resched_if_needed(programs, cpu);
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! An interrupt reaches a CPU.

use super::{Programs, Sched, kind};

impl Sched<'_> {
    /// An interrupt arrives: enqueue the tasks that were sent here, then reschedule if need be.
    pub fn interrupt(&mut self, programs: &mut dyn Programs, cpu: usize) {
        self.cpus[cpu].inbox.tell(false);
        while let Some(task) = self.cpus[cpu].inbox.take() {
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

    /// An interrupt comes to a CPU that may be at such work. Returns whether it has to wait; then
    /// it comes again when the stretch under way is done. Those that follow are dropped.
    pub fn finish_chore(&mut self, cpu: usize) -> bool {
        let c = &mut self.cpus[cpu];
        let end = c.chores.drop_all(self.now);
        let Some(at_ns) = end.filter(|_| c.current.is_none()) else {
            return false;
        };
        self.at(at_ns, kind::IPI, cpu as u32, 0);
        true
    }
}

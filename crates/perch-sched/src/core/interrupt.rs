// SPDX-License-Identifier: GPL-2.0-or-later
//! The work of a CPU that an interrupt reaches.

use super::{Programs, Sched, kind};

impl Sched<'_> {
    /// Handles an interrupt on `cpu`: enqueues the tasks that were sent to this CPU, then
    /// reschedules if need be.
    pub fn interrupt(&mut self, programs: &mut dyn Programs, cpu: usize) {
        self.cpus[cpu].inbox.tell(false);
        if let Some(search) = self.cpus[cpu].newidle.take()
            && self.go_on_searching(programs, cpu, search)
        {
            return;
        }
        while let Some(task) = self.cpus[cpu].inbox.take() {
            self.enqueue(cpu, task, false);
            self.check_preempt(cpu, task);
        }
        if self.cpus[cpu].inbox.take_kick() {
            self.rq.ask_resched(cpu);
        }
        if self.rq.current(cpu).is_none() {
            if self.rq.nr(cpu) > 0 || self.rq.is_kicked(cpu) {
                if !self.begin_leaving_idle(cpu) {
                    self.schedule(programs, cpu);
                }
            } else {
                let now = self.rq.now();
                // Somebody has taken the tasks that it was to run: the idle task goes on.
                self.rq.clear_resched(cpu);
                self.rq.idleness_mut(cpu).idle_on(now);
                self.host.set_idle(cpu, self.leaves_for_ns(cpu) == 0);
            }
        } else {
            self.resched_if_needed(programs, cpu);
        }
    }

    /// Handles the interrupt that asks `cpu` to push its real-time tasks, and passes it on.
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

    /// Returns whether an interrupt has to wait, because `cpu` is idle and does the kernel's own
    /// work. The interrupt then comes again when the stretch under way is done, and the CPU drops
    /// the stretches that would follow.
    pub fn finish_chore(&mut self, cpu: usize) -> bool {
        let c = &mut self.cpus[cpu];
        let end = c.chores.drop_all(self.rq.now());
        let Some(at_ns) = end.filter(|_| self.rq.current(cpu).is_none()) else {
            return false;
        };
        self.at(at_ns, kind::IPI, cpu as u32, 0);
        true
    }
}

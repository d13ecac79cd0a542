// SPDX-License-Identifier: GPL-2.0-or-later
//! Pushing and pulling (`push_rt_task`, `pull_rt_task` of 6.12).
//!
//! The kernel may have to let go of its queue's lock to take another's, and then looks again, up
//! to three times; a sequential simulation looks once. It pulls directly, as kernels without
//! PREEMPT_RT do, and sends nobody an interrupt to push (RT_PUSH_IPI).

use crate::core::{Life, Sched};
use crate::id::TaskId;
use crate::observe::RtStep;

impl Sched<'_> {
    /// Pushes the tasks that wait on a CPU to others that run something lower, the highest
    /// first, as long as one goes.
    #[inline(never)]
    pub(super) fn push_rt(&mut self, cpu: usize) {
        while self.push_one(cpu) {}
    }

    fn push_one(&mut self, cpu: usize) -> bool {
        let Some((priority, task)) = self.cpus[cpu].rt.pushable.first() else {
            return false;
        };
        // One that slipped in and is higher than what runs needs no other CPU.
        if priority > self.running_priority(cpu) {
            self.resched(cpu);
            return false;
        }
        let Some(to) = self.find_lowest(task) else {
            return false;
        };
        if to == cpu || self.cpus[to].rt.runnable.highest() >= priority {
            return false;
        }
        self.move_rt(task, cpu, to, RtStep::Push);
        self.resched(to);
        true
    }

    /// A CPU goes from a real-time task to something lower: takes, from each overloaded CPU in
    /// turn, a task that is higher than what it has, unless that is about to preempt its own
    /// CPU's.
    pub(super) fn pull_rt(&mut self, cpu: usize) {
        if !self.others_overloaded(cpu) {
            return;
        }
        let mut from = 0;
        while let Some(source) = self.next_overloaded(from) {
            from = source + 1;
            let own = self.cpus[cpu].rt.runnable.highest();
            let waiting = &self.cpus[source].rt.pushable;
            if source == cpu || waiting.highest() <= own {
                continue;
            }
            let first = waiting.iter().find(|&(_, task)| self.may_run_on(task, cpu));
            let running = self.running_priority(source);
            let comes = first.filter(|&(priority, _)| priority > own && priority <= running);
            if let Some((_, task)) = comes {
                self.move_rt(task, source, cpu, RtStep::Pull);
            }
        }
    }

    /// Asks a CPU to choose again who runs; another one by interrupt.
    fn resched(&mut self, cpu: usize) {
        let here = self.acting;
        let asked = std::mem::replace(&mut self.cpus[cpu].need_resched, true);
        if cpu != here && (!asked || self.cpus[cpu].current.is_none()) {
            self.send_ipi(cpu, here, 0);
        }
    }

    /// A waiting task goes to another CPU's queue. Whoever runs where that is decided pays as for
    /// a wake-up.
    fn move_rt(&mut self, task: TaskId, from: usize, to: usize, place: RtStep) {
        let here = self.acting;
        self.dequeue_rt(from, task);
        self.publish(from);
        self.tasks[task].life = Life::Waking;
        if self.cpus[from].llc != self.cpus[to].llc {
            self.reserve(from, -1);
            self.reserve(to, 1);
        }
        self.note_place(task, here, from, to, place);
        self.end_streak(to);
        self.update_current(to);
        self.enqueue_rt(to, task);
        let pays = self.cpus[here].current.unwrap_or(task);
        let cost = self.costs.wake_ns(0);
        self.charge_kernel(here, pays, cost);
    }
}

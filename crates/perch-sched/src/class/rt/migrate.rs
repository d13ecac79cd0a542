// SPDX-License-Identifier: GPL-2.0-or-later
//! Pushing and pulling (`push_rt_task`, `pull_rt_task` of 6.12).
//!
//! The kernel may have to release its queue's lock to take another's, and then looks again, up to
//! three times; a sequential simulation looks once. The model pulls directly, as kernels without
//! PREEMPT_RT do, and sends no CPU an interrupt to push (RT_PUSH_IPI).

use crate::core::{Life, Sched};
use crate::id::TaskId;
use crate::observe::RtStep;

impl Sched<'_> {
    /// Pushes the tasks that wait on `cpu` to CPUs that run a lower priority, the highest task
    /// first, until one finds no CPU.
    #[inline(never)]
    pub(super) fn push_rt(&mut self, cpu: usize) {
        while self.push_one(cpu) {}
    }

    fn push_one(&mut self, cpu: usize) -> bool {
        let Some((priority, task)) = self.rq.cpus[cpu].rt.pushable.first() else {
            return false;
        };
        // A task of a higher priority than the running one, which was enqueued meanwhile, needs no
        // other CPU.
        if priority > self.running_priority(cpu) {
            self.resched(cpu);
            return false;
        }
        let Some(to) = self.find_lowest(task) else {
            return false;
        };
        if to == cpu || self.rq.cpus[to].rt.runnable.highest() >= priority {
            return false;
        }
        self.move_rt(task, cpu, to, RtStep::Push);
        self.resched(to);
        true
    }

    /// Pulls tasks to `cpu`, which goes from a real-time task to a lower priority. The CPU takes,
    /// from each overloaded CPU in turn, a task of a higher priority than its own tasks have,
    /// unless that task is about to preempt the running one of its own CPU.
    pub(super) fn pull_rt(&mut self, cpu: usize) {
        if !self.others_overloaded(cpu) {
            return;
        }
        let mut from = 0;
        while let Some(source) = self.next_overloaded(from) {
            from = source + 1;
            let own = self.rq.cpus[cpu].rt.runnable.highest();
            let waiting = &self.rq.cpus[source].rt.pushable;
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

    /// Asks `cpu` to reschedule; if it is another CPU, by an interrupt.
    fn resched(&mut self, cpu: usize) {
        let here = self.acting;
        let asked = std::mem::replace(&mut self.rq.cpus[cpu].need_resched, true);
        if cpu != here && (!asked || self.rq.cpus[cpu].current.is_none()) {
            self.send_ipi(cpu, here, 0);
        }
    }

    /// Moves a waiting task to the queue of another CPU. The cost, that of a wake-up, is charged to
    /// the task that runs where the move is decided, or to the moved task if none does.
    fn move_rt(&mut self, task: TaskId, from: usize, to: usize, place: RtStep) {
        let here = self.acting;
        self.dequeue_rt(from, task);
        self.publish(from);
        self.rq.tasks[task].life = Life::Waking;
        if self.cpus[from].llc != self.cpus[to].llc {
            self.reserve(from, -1);
            self.reserve(to, 1);
        }
        self.note_place(task, here, from, to, place);
        self.end_streak(to);
        self.update_current(to);
        self.enqueue_rt(to, task);
        let pays = self.rq.cpus[here].current.unwrap_or(task);
        let cost = self.costs.wake_ns(0);
        self.charge_kernel(here, pays, cost);
    }
}

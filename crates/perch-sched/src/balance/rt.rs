// SPDX-License-Identifier: GPL-2.0-or-later
//! Pushing and pulling of real-time tasks, and their limit: the steps that the class decides, done.

use perch_policy::Wake;

use crate::class::rt::Push;
use crate::core::{Sched, Waker};
use crate::id::TaskId;
use crate::observe::{Moved, Observed, RtStep};

impl Sched<'_> {
    /// Records the choice of `cpu` for a task that `waker` wakes or forks.
    pub(crate) fn note_rt_choice(
        &mut self,
        task: TaskId,
        wake: &Wake,
        waker: Waker,
        (cpu, step): (usize, RtStep),
    ) {
        let prev_cpu = self.rq.task(task).cpu();
        let busy = !self.host.is_idle(cpu);
        self.note_place(task, wake.prev_cpu, cpu, step);
        self.happened(Observed::RtWoken {
            task,
            waker,
            this_cpu: wake.this_cpu,
            prev_cpu,
            cpu,
            busy,
        });
    }

    /// Pushes the tasks that wait on `cpu` to CPUs that run a lower priority, the highest task
    /// first, until one finds no CPU.
    #[inline(never)]
    pub(crate) fn push_rt(&mut self, cpu: usize) {
        loop {
            let push = self.rq.next_push(cpu, self.acting());
            self.apply();
            match push {
                Push::Stops => return,
                Push::Reschedules => return self.resched(cpu),
                Push::To(task, to) => {
                    self.move_rt(task, cpu, to, RtStep::Push);
                    self.resched(to);
                }
            }
        }
    }

    /// Pulls tasks to `cpu`, which goes from a real-time task to a lower priority, or has the
    /// overloaded CPUs push theirs.
    #[inline(never)]
    pub(crate) fn pull_rt(&mut self, cpu: usize) {
        let others = self.rq.others_overloaded(cpu);
        self.apply();
        if !others {
            return;
        }
        if self.rq.asks_by_interrupt() {
            return self.ask_push();
        }
        let mut from = 0;
        while let Some((task, source)) = self.rq.next_pull(cpu, from) {
            self.move_rt(task, source, cpu, RtStep::Pull);
            from = source + 1;
        }
    }

    /// Asks `cpu` to reschedule; if it is another CPU, by an interrupt.
    fn resched(&mut self, cpu: usize) {
        let here = self.acting();
        let asked = self.rq.ask_resched(cpu);
        if cpu != here && (!asked || self.rq.current(cpu).is_none()) {
            self.send_ipi(cpu, here, 0);
        }
    }

    /// Moves a waiting task to the queue of another CPU. The cost, that of a wake-up, is charged to
    /// the task that runs where the move is decided, or to the moved task if none does.
    fn move_rt(&mut self, task: TaskId, from: usize, to: usize, step: RtStep) {
        let here = self.acting();
        self.rq.detach_rt(task);
        self.apply();
        self.publish(from);
        self.count_as_idle_if_left(from);
        if self.llc(from) != self.llc(to) {
            self.reserve(from, -1);
            self.reserve(to, 1);
        }
        self.note_place(task, from, to, step);
        self.enqueue(to, task, true);
        let pays = self.rq.current(here).unwrap_or(task);
        let cost = self.costs.wake_ns(0);
        self.charge_kernel(here, pays, cost);
    }

    /// Tells the readers of events that `task` goes from `from` to `to`, or stays.
    fn note_place(&mut self, task: TaskId, from: usize, to: usize, step: RtStep) {
        let distance = self.costs.distance(from, to);
        self.happened(Observed::RtMoved(Moved {
            task,
            this_cpu: self.acting(),
            from,
            to,
            distance,
            step,
        }));
    }

    /// Does the real-time class's work of a tick that concerns all CPUs, before the work of each CPU:
    /// ends the class's period, and with it what real-time tasks have used of their share.
    #[inline]
    pub(crate) fn tick_all(&mut self) {
        if self.rq.ends_rt_period() {
            self.renew_rt();
        }
    }

    #[inline(never)]
    fn renew_rt(&mut self) {
        for cpu in 0..self.nr_cpus() {
            if !self.rq.renew_rt(cpu) {
                continue;
            }
            self.publish(cpu);
            if self.rq.nr_rt(cpu) == 0 {
                continue;
            }
            self.host.set_idle(cpu, false);
            if self.rq.current(cpu).is_none() {
                self.send_ipi(cpu, cpu, 0);
            }
        }
    }
}

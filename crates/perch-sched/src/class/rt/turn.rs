// SPDX-License-Identifier: GPL-2.0-or-later
//! A real-time task's turn on a CPU: it is picked, is preempted, or gives way.

use crate::class::RunQueues;
use crate::class::table::{Arrival, Yield};
use crate::core::Life;
use crate::id::TaskId;

impl RunQueues {
    /// Returns the task of the highest priority, if the class may run. The task keeps its place on
    /// the queue.
    #[inline]
    pub(in crate::class) fn pick_rt(&self, cpu: usize) -> Option<TaskId> {
        self.rt.as_ref()?;
        let first = self.cpus[cpu].rt.runnable.first();
        let (_, task) = first.filter(|_| self.rt_may_run(cpu))?;
        Some(task)
    }

    /// Makes the picked task the running one.
    #[inline(never)]
    pub(in crate::class) fn set_next_rt(&mut self, cpu: usize, task: TaskId) {
        self.touch_rt(cpu);
        self.dequeue_pushable(cpu, task);
        self.tasks[task].life = Life::Running;
        self.run_time_mut(task).start_ns = self.now;
        let c = &mut self.cpus[cpu];
        assert!(c.current.is_none(), "cpu {cpu} runs two tasks");
        let takes_over = !c.rt.running;
        c.current = Some(task);
        c.need_resched = false;
        c.rt.running = true;
        c.ext.last = None;
        if takes_over {
            c.rt.limit.starts(self.now);
        }
    }

    /// Makes the running task, which is preempted or gives way, wait again. It keeps its place
    /// among its equals.
    #[inline(never)]
    pub(in crate::class) fn put_rt(&mut self, cpu: usize, task: TaskId) {
        self.stop_current_rt(cpu, task);
        self.tasks[task].life = Life::Queued;
        if self.may_move(task) {
            self.enqueue_pushable(cpu, task);
        }
    }

    /// Takes the running task off the CPU.
    fn stop_current_rt(&mut self, cpu: usize, task: TaskId) {
        self.account_rt(cpu, task);
        self.touch_rt(cpu);
        let c = &mut self.cpus[cpu];
        c.current = None;
        c.rt.running = false;
        c.rt.limit.stops(self.now);
    }

    /// Puts the running task to sleep or ends it. Returns whether the next task to run has a lower
    /// priority: the CPU then pulls one that waits elsewhere.
    #[inline(never)]
    pub(in crate::class) fn leave_rt(&mut self, cpu: usize, task: TaskId, life: Life) -> bool {
        let priority = self.priority(task);
        self.dequeue_rt(cpu, task);
        self.stop_current_rt(cpu, task);
        self.tasks[task].life = life;
        self.cpus[cpu].rt.runnable.highest() < priority
    }

    /// Handles a tick that finds a task of this class running. Returns whether the class has had its
    /// share of the CPU.
    #[inline(never)]
    pub(in crate::class) fn tick_rt(&mut self, cpu: usize, task: TaskId) -> bool {
        self.account_rt(cpu, task);
        self.touch_rt(cpu);
        let limited = self.limit_ticks(cpu);
        self.tick_slice(cpu, task);
        limited
    }

    fn tick_slice(&mut self, cpu: usize, task: TaskId) {
        let slice = self.rr_ticks();
        let t = &mut self.tasks[task];
        if !t.rt.slices {
            return;
        }
        t.rt.ticks = t.rt.ticks.saturating_sub(1);
        if t.rt.ticks > 0 {
            return;
        }
        t.rt.ticks = slice;
        let priority = t.rt.priority;
        let c = &mut self.cpus[cpu];
        if c.rt.runnable.equals(priority) > 1 {
            c.rt.runnable.remove(task);
            c.rt.runnable.push_back(priority, task);
            c.need_resched = true;
        }
    }

    /// Makes the running task yield: it goes behind its equals.
    #[inline(never)]
    pub(in crate::class) fn yield_rt(&mut self, cpu: usize, task: TaskId) -> Yield {
        self.account_rt(cpu, task);
        let priority = self.priority(task);
        let queue = &mut self.cpus[cpu].rt.runnable;
        queue.remove(task);
        queue.push_back(priority, task);
        if self.pick_rt(cpu) == Some(task) { Yield::Keeps } else { Yield::GivesWay }
    }

    /// Returns whether the running task would be picked again. If so, the CPU does not switch.
    #[inline(never)]
    pub(in crate::class) fn goes_on_rt(&mut self, cpu: usize, task: TaskId) -> bool {
        let same = self.cpus[cpu].rt.running && self.pick_rt(cpu) == Some(task);
        if same {
            self.cpus[cpu].need_resched = false;
        }
        same
    }

    /// Lets `wakee`, which was just enqueued on `cpu`, preempt the running task. If it does not,
    /// and it may run elsewhere, the CPU pushes it (`wakeup_preempt_rt`, `task_woken_rt`).
    #[inline(never)]
    pub(in crate::class) fn check_preempt_rt(&mut self, cpu: usize, wakee: TaskId) -> Arrival {
        let mut arrival = Arrival::default();
        if !self.rt_may_run(cpu) {
            return arrival;
        }
        let Some(current) = self.cpus[cpu].current else {
            self.cpus[cpu].need_resched = true;
            return arrival;
        };
        let (priority, running) = (self.priority(wakee), self.priority(current));
        if priority > running {
            arrival.preempts = !std::mem::replace(&mut self.cpus[cpu].need_resched, true);
        } else if priority == running && !self.cpus[cpu].need_resched {
            arrival.preempts = self.preempts_equal(cpu, wakee, current);
        }
        let stays = running >= priority || !self.may_move(current);
        arrival.pushes =
            running > 0 && stays && !self.cpus[cpu].need_resched && self.may_move(wakee);
        arrival
    }

    /// Lets `wakee` preempt the running task of equal priority if only the running one can move.
    /// Returns whether it does.
    fn preempts_equal(&mut self, cpu: usize, wakee: TaskId, current: TaskId) -> bool {
        if !self.may_move(current) || !self.any_lower(current) {
            return false;
        }
        if self.may_move(wakee) && self.any_lower(wakee) {
            return false;
        }
        let priority = self.priority(wakee);
        let c = &mut self.cpus[cpu];
        c.rt.runnable.remove(wakee);
        c.rt.runnable.push_front(priority, wakee);
        c.need_resched = true;
        true
    }
}

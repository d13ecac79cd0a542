// SPDX-License-Identifier: GPL-2.0-or-later
//! A real-time task's turn on a CPU: it is picked, is preempted, or gives way.

use crate::class::table::Yield;
use crate::core::{Life, Sched};
use crate::id::TaskId;
use crate::observe::Observed;

impl Sched<'_> {
    /// Returns the task of the highest priority, if the class may run. The task keeps its place on
    /// the queue.
    #[inline]
    pub(super) fn pick_rt(&self, cpu: usize) -> Option<TaskId> {
        self.rq.rt.as_ref()?;
        let first = self.rq.cpus[cpu].rt.runnable.first();
        let (_, task) = first.filter(|_| self.rt_may_run(cpu))?;
        Some(task)
    }

    /// Makes the picked task the running one.
    #[inline(never)]
    pub(super) fn set_next_rt(&mut self, cpu: usize, task: TaskId) {
        self.touch_rt(cpu);
        self.dequeue_pushable(cpu, task);
        self.rq.tasks[task].life = Life::Running;
        self.run_time_mut(task).start_ns = self.rq.now;
        let c = &mut self.rq.cpus[cpu];
        assert!(c.current.is_none(), "cpu {cpu} runs two tasks");
        let takes_over = !c.rt.running;
        c.current = Some(task);
        c.need_resched = false;
        c.rt.running = true;
        if takes_over {
            c.rt.limit.starts(self.rq.now);
        }
        if self.caches.is_on() {
            self.starts_running(task);
        }
        self.publish(cpu);
    }

    /// Makes the running task, which is preempted or gives way, wait again. It keeps its place
    /// among its equals.
    #[inline(never)]
    pub(super) fn put_rt(&mut self, cpu: usize, task: TaskId) {
        self.stop_current_rt(cpu, task);
        self.rq.tasks[task].life = Life::Queued;
        if self.may_move(task) {
            self.enqueue_pushable(cpu, task);
        }
    }

    /// Takes the running task off the CPU.
    fn stop_current_rt(&mut self, cpu: usize, task: TaskId) {
        self.account_rt(cpu, task);
        self.touch_rt(cpu);
        let c = &mut self.rq.cpus[cpu];
        c.current = None;
        c.rt.running = false;
        c.rt.limit.stops(self.rq.now);
        if self.caches.is_on() {
            self.stops_running(cpu, task);
        }
    }

    /// Puts the running task to sleep or ends it. The next task to run may have a lower priority
    /// than one that waits elsewhere, which the CPU then pulls.
    #[inline(never)]
    pub(super) fn leave_rt(&mut self, cpu: usize, task: TaskId, life: Life) {
        let priority = self.priority(task);
        self.dequeue_rt(cpu, task);
        self.stop_current_rt(cpu, task);
        self.rq.tasks[task].life = life;
        if self.caches.is_on() {
            self.reserve(cpu, -1);
            if life == Life::Dead {
                self.count_thread(task, -1);
            }
        }
        if self.rq.cpus[cpu].rt.runnable.highest() < priority {
            self.pull_rt(cpu);
        }
    }

    /// Handles a tick that finds a task of this class running.
    #[inline(never)]
    pub(super) fn tick_rt(&mut self, cpu: usize, task: TaskId) {
        self.account_rt(cpu, task);
        self.touch_rt(cpu);
        self.publish(cpu);
        self.limit_ticks(cpu);
        let slice = self.rr_ticks();
        let t = &mut self.rq.tasks[task];
        if !t.rt.slices {
            return;
        }
        t.rt.ticks = t.rt.ticks.saturating_sub(1);
        if t.rt.ticks > 0 {
            return;
        }
        t.rt.ticks = slice;
        let priority = t.rt.priority;
        let c = &mut self.rq.cpus[cpu];
        if c.rt.runnable.equals(priority) > 1 {
            c.rt.runnable.remove(task);
            c.rt.runnable.push_back(priority, task);
            c.need_resched = true;
        }
    }

    /// Makes the running task yield: it goes behind its equals.
    #[inline(never)]
    pub(super) fn yield_rt(&mut self, cpu: usize, task: TaskId) -> Yield {
        self.account_rt(cpu, task);
        let priority = self.priority(task);
        let queue = &mut self.rq.cpus[cpu].rt.runnable;
        queue.remove(task);
        queue.push_back(priority, task);
        match self.pick_rt(cpu) == Some(task) {
            true => Yield::Keeps,
            false => Yield::GivesWay,
        }
    }

    /// Returns whether the running task would be picked again. If so, the CPU does not switch.
    #[inline(never)]
    pub(super) fn goes_on_rt(&mut self, cpu: usize, task: TaskId) -> bool {
        let same = self.rq.cpus[cpu].rt.running && self.pick_rt(cpu) == Some(task);
        if same {
            self.rq.cpus[cpu].need_resched = false;
        }
        same
    }

    /// Lets `wakee`, which was just enqueued on `cpu`, preempt the running task. If it does not,
    /// and it may run elsewhere, the CPU pushes it (`wakeup_preempt_rt`, `task_woken_rt`).
    #[inline(never)]
    pub(super) fn check_preempt_rt(&mut self, cpu: usize, wakee: TaskId) {
        if !self.rt_may_run(cpu) {
            return;
        }
        let Some(current) = self.rq.cpus[cpu].current else {
            self.rq.cpus[cpu].need_resched = true;
            return;
        };
        let (priority, running) = (self.priority(wakee), self.priority(current));
        if priority > running {
            if !std::mem::replace(&mut self.rq.cpus[cpu].need_resched, true) {
                self.happened(Observed::Preempted { cpu, wakee });
            }
        } else if priority == running && !self.rq.cpus[cpu].need_resched {
            self.check_equal(cpu, wakee, current);
        }
        let stays = running >= priority || !self.may_move(current);
        let c = &self.rq.cpus[cpu];
        if running > 0 && stays && !c.need_resched && self.may_move(wakee) {
            self.push_rt(cpu);
        }
    }

    /// Lets `wakee` preempt the running task of equal priority if only the running one can move.
    fn check_equal(&mut self, cpu: usize, wakee: TaskId, current: TaskId) {
        if !self.may_move(current) || !self.any_lower(current) {
            return;
        }
        if self.may_move(wakee) && self.any_lower(wakee) {
            return;
        }
        let priority = self.priority(wakee);
        let c = &mut self.rq.cpus[cpu];
        c.rt.runnable.remove(wakee);
        c.rt.runnable.push_front(priority, wakee);
        c.need_resched = true;
        self.happened(Observed::Preempted { cpu, wakee });
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Running tasks: segments of work, the ways to leave a CPU, and switching.
//!
//! A function that may hand a CPU to another task takes the programs as a parameter: the program of
//! that task goes on at once, at the place where the CPU was handed over.

use perch_policy::Wake;

use super::{Life, Programs, Sched, Waker};
use crate::class::table::Yield;
use crate::id::{MaskId, TaskGroupId, TaskId};
use crate::observe::Observed;

impl Sched<'_> {
    /// Puts the running task of `cpu` to sleep.
    pub fn block(&mut self, programs: &mut dyn Programs, cpu: usize, task: TaskId) {
        self.leave_caches(cpu, task);
        self.leave(cpu, task, Life::Asleep);
        self.cpus[cpu].leaver.sleeps(task);
        self.schedule(programs, cpu);
    }

    /// The running task calls exec, the cheapest moment to move it. Returns whether the task left
    /// `cpu`.
    pub fn exec(&mut self, programs: &mut dyn Programs, cpu: usize, task: TaskId) -> bool {
        if self.rq.task(task).carries {
            return false;
        }
        let wake = Wake {
            now_ns: self.rq.now(),
            this_cpu: cpu,
            prev_cpu: cpu,
            exec: true,
            ..Wake::default()
        };
        let (to, _) = self.select(task, &wake, Waker::Task(task));
        to != cpu && self.push_running(programs, cpu, to)
    }

    /// The running task sets its own affinity to `mask`, and moves to `to`, which is a CPU of
    /// `mask`, unless `to` is `None`. Returns whether the task left `cpu`.
    pub fn bind(
        &mut self,
        programs: &mut dyn Programs,
        cpu: usize,
        task: TaskId,
        mask: MaskId,
        to: Option<usize>,
    ) -> bool {
        self.rq.bind(task, mask);
        self.rq.tell_bound(task);
        self.apply();
        to.is_some_and(|to| self.push_running(programs, cpu, to))
    }

    /// The running task moves to another task group, `None` for the root group, and competes for
    /// `cpu` there (`sched_move_task`).
    pub fn join(
        &mut self,
        programs: &mut dyn Programs,
        cpu: usize,
        task: TaskId,
        group: Option<u32>,
    ) {
        self.leave_caches(cpu, task);
        self.put(cpu);
        self.regroup(cpu, task, group.map(TaskGroupId));
        self.schedule(programs, cpu);
    }

    /// Ends the running task of `cpu`.
    pub fn exit(&mut self, programs: &mut dyn Programs, cpu: usize, task: TaskId) {
        self.leave(cpu, task, Life::Dead);
        self.schedule(programs, cpu);
    }

    /// Makes the running task of `cpu` give way, unless its class would pick it again.
    pub fn preempt(&mut self, programs: &mut dyn Programs, cpu: usize) {
        let Some(task) = self.rq.current(cpu) else {
            return;
        };
        if self.rq.goes_on(cpu, task) {
            return self.go_on(programs, cpu, task);
        }
        self.leave_caches(cpu, task);
        self.put(cpu);
        self.schedule(programs, cpu);
    }

    /// The running task yields. Returns whether it left the CPU.
    pub fn give_way(&mut self, programs: &mut dyn Programs, cpu: usize, task: TaskId) -> bool {
        if self.rq.is_outranked(cpu, task) {
            self.preempt(programs, cpu);
            return true;
        }
        match self.yields(cpu, task) {
            Yield::Keeps | Yield::Again => return false,
            Yield::GivesWay => {
                self.leave_caches(cpu, task);
                self.put(cpu);
                self.schedule(programs, cpu);
            }
            Yield::To(next) => {
                self.leave_caches(cpu, task);
                self.switch_to(programs, cpu, next);
            }
        }
        true
    }

    /// Switches if a reschedule was requested while the running task was in the middle of its work.
    pub fn resched_if_needed(&mut self, programs: &mut dyn Programs, cpu: usize) {
        if self.rq.is_kicked(cpu) {
            return self.schedule(programs, cpu);
        }
        if self.rq.need_resched(cpu)
            && let Some(task) = self.rq.current(cpu)
            && !self.rq.task(task).atomic
        {
            self.stop_segment(cpu);
            self.preempt(programs, cpu);
        }
    }

    /// Picks the task that runs next on `cpu`, which runs none, and switches to it.
    pub(crate) fn schedule(&mut self, programs: &mut dyn Programs, cpu: usize) {
        assert!(self.rq.current(cpu).is_none(), "cpu {cpu} runs somebody");
        self.rq.clear_resched(cpu);
        if !self.rq.balances() && self.begin_search(cpu) {
            return;
        }
        if let Some(task) = self.pick(cpu) {
            return self.switch_to(programs, cpu, task);
        }
        self.note_misfit(cpu);
        if !self.begin_newidle(cpu) {
            self.go_idle(cpu);
        }
    }

    pub(super) fn switch_to(&mut self, programs: &mut dyn Programs, cpu: usize, task: TaskId) {
        // A CPU that has left its idle loop has done the switch's work.
        let left_idle = self.rq.idleness(cpu).is_woken();
        let was_idle = self.rq.idleness(cpu).is_idle();
        if was_idle {
            self.leave_idle(cpu);
        }
        self.cpus[cpu].chores.clear();
        self.cpus[cpu].leaver.runs();
        self.set_next(cpu, task);
        let woken_ns = std::mem::take(&mut self.rq.task_mut(task).woken_ns);
        let latency_ns = (woken_ns > 0).then(|| self.rq.now() - woken_ns);
        self.happened(Observed::Switched { task, cpu, latency_ns });
        let t = self.rq.task_mut(task);
        let warm = t.warm();
        let c = &mut self.cpus[cpu];
        let others = c.fill - t.warm_fill.min(c.fill);
        let refill = self.costs.refill_ns(t.footprint, warm, cpu, others);
        c.fill += u64::from(t.footprint.lines);
        let switch_ns = if left_idle { 0 } else { self.costs.context_switch_ns() };
        // A switch takes a nanosecond at least, so that a task that blocks at once does so at a
        // later time.
        t.debt_ns += (switch_ns + refill).max(1);
        let between = t.left_ns == 0;
        let took_ns = c.wall_ns(switch_ns);
        let strays = t.cache.ran_in() != c.llc;
        let others = match warm {
            Some(warm) if warm != cpu => self.cpus[warm].fill.saturating_sub(t.warm_fill),
            _ => others,
        };
        self.happened(Observed::InKernel { cpu, ns: took_ns });
        self.touch_llc(cpu, task, warm, others);
        if strays {
            self.changes_llc(cpu, task);
        }
        if was_idle {
            self.share_core(cpu);
        }
        self.switched(cpu);
        // The task continues the operation under way; a task that was between two operations starts
        // the next.
        if self.rq.task(task).carries {
            programs.enter(self, cpu, task);
        } else if between {
            programs.advance(self, cpu, task);
        } else {
            self.begin_segment(cpu);
        }
    }

    /// Lets the running task go on although it was asked to give way.
    fn go_on(&mut self, programs: &mut dyn Programs, cpu: usize, task: TaskId) {
        match self.rq.task(task).left_ns {
            0 => programs.advance(self, cpu, task),
            _ => self.begin_segment(cpu),
        }
    }
}

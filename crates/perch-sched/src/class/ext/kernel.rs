// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel as an outside scheduler sees it, and what it may ask the kernel to do.

use perch_policy::{CpuMask, Topology};

use crate::class::RunQueues;
use crate::class::effect::Effect;
use crate::id::TaskId;

/// The kernel as an [`super::ExtClass`] sees it.
pub struct ExtKernel<'k> {
    rq: &'k mut RunQueues,
    here: usize,
}

impl<'k> ExtKernel<'k> {
    pub(super) fn new(rq: &'k mut RunQueues, here: usize) -> ExtKernel<'k> {
        ExtKernel { rq, here }
    }
}

/// Questions.
impl ExtKernel<'_> {
    /// Returns the time, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.rq.now
    }

    /// Returns the CPU that executes the scheduler's function.
    pub fn here(&self) -> usize {
        self.here
    }

    /// Returns the machine's shape.
    pub fn topology(&self) -> &Topology {
        &self.rq.topology
    }

    /// Returns the number of tasks of the run, the unborn ones included.
    pub fn nr_tasks(&self) -> usize {
        self.rq.tasks.len()
    }

    /// Returns the running task of `cpu`; `None`: the idle task.
    pub fn current(&self, cpu: usize) -> Option<TaskId> {
        self.rq.cpus[cpu].current
    }

    /// Returns whether `cpu` runs a task of the extensible class.
    pub fn runs_ext(&self, cpu: usize) -> bool {
        self.rq.runs_ext(cpu)
    }

    /// Returns the number of runnable tasks of all classes on `cpu`, the running one included.
    pub fn nr_running(&self, cpu: usize) -> u32 {
        self.rq.nr(cpu)
    }

    /// Returns the CPU on which the task runs or ran last, and on whose queue it is if it waits.
    pub fn cpu_of(&self, task: TaskId) -> usize {
        self.rq.tasks[task].cpu
    }

    /// Returns the CPUs that the task may use.
    pub fn allowed(&self, task: TaskId) -> &CpuMask {
        self.rq.allowed(task)
    }

    /// Returns the time that the task has run, up to its last charge, in nanoseconds.
    pub fn ran_ns(&self, task: TaskId) -> u64 {
        self.rq.run_time(task).sum_ns
    }
}

/// Requests.
impl ExtKernel<'_> {
    /// Asks `cpu` to reschedule (`resched_curr()`).
    pub fn resched(&mut self, cpu: usize) {
        self.rq.cpus[cpu].need_resched = true;
        self.rq.effects.push(Effect::Rescheduled(cpu));
    }

    /// Has `cpu` reschedule as soon as this CPU has left the scheduler's function
    /// (`kick_cpus_irq_work`), and `late_ns` nanoseconds later.
    pub fn kick(&mut self, cpu: usize, late_ns: u64) {
        self.rq.effects.push(Effect::Kicked(cpu, late_ns));
    }

    /// Moves a waiting task to the queue of another CPU, which the task may use.
    pub fn moves(&mut self, task: TaskId, to: usize) {
        let from = self.rq.tasks[task].cpu;
        assert!(
            self.rq.may_run_on(task, to),
            "task {task} is moved to cpu {to}, which it may not use"
        );
        self.rq.cpus[from].ext.nr -= 1;
        self.rq.cpus[to].ext.nr += 1;
        self.rq.tasks[task].cpu = to;
        self.rq.effects.push(Effect::Fetched { task, from, to });
    }

    /// Notes that the function takes this CPU `ns` nanoseconds of kernel work.
    pub fn takes(&mut self, ns: u64) {
        self.rq.effects.push(Effect::Took(ns));
    }

    /// Starts a timer on this CPU, which expires at `at_ns` and tells [`super::ExtClass::timer`] the
    /// key.
    pub fn start_timer(&mut self, at_ns: u64, key: u32) {
        self.rq.effects.push(Effect::Timer { at_ns, key });
    }
}

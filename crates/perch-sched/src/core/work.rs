// SPDX-License-Identifier: GPL-2.0-or-later
//! Where tasks are, for the caller that drives a scheduler, and the work that they have left.

use perch_machine::Footprint;
use perch_policy::CpuMask;

use super::{Life, Sched};
use crate::id::{MaskId, TaskId};

impl Sched<'_> {
    /// Returns the CPUs that `task` may use.
    pub fn allowed(&self, task: TaskId) -> &CpuMask {
        self.rq.allowed(task)
    }

    /// Returns a set of CPUs that tasks can be bound to, by its place in [`crate::Setup::masks`].
    pub fn mask(&self, mask: MaskId) -> &CpuMask {
        self.rq.mask(mask)
    }

    /// Returns the state that `task` is in.
    #[inline]
    pub fn life(&self, task: TaskId) -> Life {
        self.rq.task(task).life()
    }

    /// Returns the CPU on which `task` runs or ran last.
    #[inline]
    pub fn cpu_of_task(&self, task: TaskId) -> usize {
        self.rq.task(task).cpu()
    }

    /// Returns the CPU whose caches hold the lines of `task`, and that CPU's fill counter at the
    /// moment at which the task left it.
    pub fn warmth(&self, task: TaskId) -> (Option<usize>, u64) {
        let t = self.rq.task(task);
        let warm = t.warm();
        (warm, t.warm_fill)
    }

    /// Returns the lines that `task` touches every time it runs.
    pub fn footprint(&self, task: TaskId) -> Footprint {
        self.rq.task(task).footprint
    }

    /// Returns the time at which `task` was last woken, or last left a CPU while it was runnable,
    /// in nanoseconds.
    pub fn waits_since_ns(&self, task: TaskId) -> u64 {
        self.rq.task(task).waits_since_ns
    }

    /// Returns the time that `task` has run so far, in nanoseconds.
    pub fn ran_ns(&self, task: TaskId) -> u64 {
        let run = self.rq.run_time(task);
        match self.rq.task(task).life() {
            Life::Running => run.sum_ns + self.rq.now().saturating_sub(run.start_ns),
            _ => run.sum_ns,
        }
    }
}

/// The work of tasks. A task that never comes to a CPU of this machine has such an account too; the
/// task that carries it works it off.
impl Sched<'_> {
    /// Returns the work that is left of the operation under way, in nanoseconds at full capacity.
    #[inline]
    pub fn left_ns(&self, task: TaskId) -> u64 {
        self.rq.task(task).left_ns
    }

    /// Gives `task` the work `work_ns` instead of what was left to it.
    #[inline]
    pub fn set_work(&mut self, task: TaskId, work_ns: u64) {
        self.rq.task_mut(task).left_ns = work_ns;
    }

    /// Gives `task` the work `work_ns` in addition to what is left to it.
    pub fn add_work(&mut self, task: TaskId, work_ns: u64) {
        self.rq.task_mut(task).left_ns += work_ns;
    }

    /// Gives `task` the work `work_ns`, which is the kernel's, instead of what was left to it.
    pub fn set_kernel_work(&mut self, cpu: usize, task: TaskId, work_ns: u64) {
        self.set_work(task, work_ns);
        self.note_kernel(cpu, work_ns);
    }

    /// Charges `task` the work `work_ns`, which is not the kernel's, before its next operation.
    #[inline]
    pub fn charge(&mut self, task: TaskId, work_ns: u64) {
        self.rq.task_mut(task).debt_ns += work_ns;
    }

    /// Returns whether `task` has to work off a charge before its next operation.
    #[inline]
    pub fn owes_work(&self, task: TaskId) -> bool {
        self.rq.task(task).debt_ns > 0
    }

    /// Takes all work away from `task`, and returns it: what is left and what the task owes.
    pub fn take_work(&mut self, task: TaskId) -> u64 {
        let t = self.rq.task_mut(task);
        std::mem::take(&mut t.left_ns) + std::mem::take(&mut t.debt_ns)
    }

    /// Notes that the running task enters (`is`) or leaves a stretch of kernel code with interrupts
    /// off, in which no other task preempts it.
    #[inline]
    pub fn set_atomic(&mut self, task: TaskId, is: bool) {
        self.rq.task_mut(task).atomic = is;
    }

    /// Returns whether the running task is alone on `cpu` and not asked to reschedule, as a streak
    /// requires. The time that the CPU has waited for contended lines is charged to the task first,
    /// because a streak cannot charge it.
    pub fn is_alone(&mut self, cpu: usize) -> bool {
        self.settle_lines(cpu);
        let one = self.rq.nr(cpu) == 1 && self.rq.nr_fair(cpu) == 1;
        // The task that asked may have left again, but the next yield still reschedules.
        one && !self.rq.need_resched(cpu)
    }
}

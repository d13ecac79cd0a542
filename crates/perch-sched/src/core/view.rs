// SPDX-License-Identifier: GPL-2.0-or-later
//! The interface for the caller that drives a scheduler: the events in their order, where tasks
//! are, and the work that they have left.

use perch_engine::{Event, EventQueue};
use perch_machine::Footprint;
use perch_policy::{CpuMask, Host};

use super::inbox::Inbox;
use super::{Life, Sched};
use crate::era::EraRules;
use crate::hardware::{C2c, Costs};
use crate::id::{MaskId, TaskId};
use crate::observe::Counts;

/// Time and events.
impl Sched<'_> {
    /// Returns the current time of the run, in nanoseconds.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.rq.now()
    }

    /// Lets time pass until `now_ns`; the caller makes sure that no event is pending before it.
    pub fn pass_to(&mut self, now_ns: u64) {
        self.rq.pass_to(now_ns);
        self.catch_up();
    }

    /// Takes the next event up to `until_ns`, and lets time pass to it. With `in_order`, this is
    /// the event of the lowest kind and then the lowest key among those of one moment, which
    /// streaks need; otherwise it is the one that was pushed first.
    #[inline]
    pub fn next(&mut self, until_ns: u64, in_order: bool) -> Option<Event> {
        let event = self.events.pop_until(until_ns)?;
        self.pass_to(event.at_ns);
        let event = if !in_order {
            event
        } else {
            self.events.exchange_for_least(event, |e| (e.kind, e.key))
        };
        self.handled = (event.kind, event.key);
        Some(event)
    }

    /// Returns the pending events.
    pub fn events(&self) -> &EventQueue {
        &self.events
    }

    /// Returns the rules of the stock kernel.
    #[inline]
    pub(crate) fn rules(&self) -> &EraRules {
        &self.rules
    }

    /// Returns the CPU that executes kernel code at this moment.
    #[inline]
    pub(crate) fn acting(&self) -> usize {
        self.acting
    }

    /// Makes `cpu` the one that executes kernel code from now on: the time is charged to it.
    #[inline]
    pub fn act_on(&mut self, cpu: usize) {
        self.acting = cpu;
        self.rq.act_on(cpu);
    }
}

/// CPUs and tasks.
impl Sched<'_> {
    /// Returns the number of CPUs.
    pub fn nr_cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Returns the number of tasks; those that sleep, are unborn or are dead count too.
    pub fn nr_tasks(&self) -> usize {
        self.rq.nr_tasks()
    }

    /// Returns the task that runs on `cpu`.
    #[inline]
    pub fn current(&self, cpu: usize) -> Option<TaskId> {
        self.rq.current(cpu)
    }

    /// Returns whether the running task of `cpu` should give way as soon as possible.
    #[inline]
    pub fn need_resched(&self, cpu: usize) -> bool {
        self.rq.need_resched(cpu)
    }

    /// Returns the number of runnable tasks of all classes on `cpu`, the running one included.
    #[inline]
    pub fn nr(&self, cpu: usize) -> u32 {
        self.rq.nr(cpu)
    }

    /// Returns the speed of `cpu`, in 1024ths of full capacity.
    pub fn speed_1024(&self, cpu: usize) -> u32 {
        self.cpus[cpu].speed_1024
    }

    /// Returns the LLC of `cpu`, if it shares one.
    pub fn llc(&self, cpu: usize) -> Option<usize> {
        self.cpus[cpu].llc
    }

    /// Returns the tasks and the interrupts that are on their way to `cpu`, for checks.
    pub(crate) fn inbox(&self, cpu: usize) -> &Inbox {
        &self.cpus[cpu].inbox
    }

    /// Returns the tag of the event that ends the segment of `cpu`, for checks.
    pub(crate) fn segment_tag(&self, cpu: usize) -> u32 {
        self.cpus[cpu].segment.tag()
    }

    /// Returns the number of lines that tasks have brought into the caches of `cpu` so far.
    pub fn fill(&self, cpu: usize) -> u64 {
        self.cpus[cpu].fill
    }

    /// Notes that a task brings `lines` lines into the caches of `cpu`.
    pub fn add_fill(&mut self, cpu: usize, lines: u32) {
        self.cpus[cpu].fill += u64::from(lines);
    }

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

    /// Returns the machine as the policy sees it.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Returns the times that the hardware charges.
    #[inline]
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Returns whether the run models the last-level caches. If so, each stretch of work uses the
    /// task's working set again.
    pub fn models_llcs(&self) -> bool {
        self.llcs.is_some()
    }

    /// Returns the counts since [`Sched::start_counting`].
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Sets all counts back, so that the run counts from now on.
    pub fn start_counting(&mut self) {
        self.take_busy();
        self.counts = Counts::new();
        self.lines.start_counting();
    }

    /// Takes the counts, and those of the accesses to contended cache lines, where these are
    /// modelled.
    pub fn take_counts(&mut self) -> (Counts, Option<Box<C2c>>) {
        let met = self.lines.counted();
        (std::mem::take(&mut self.counts), met)
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

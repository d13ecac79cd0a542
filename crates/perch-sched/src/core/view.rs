// SPDX-License-Identifier: GPL-2.0-or-later
//! What those who drive a scheduler see of it and tell it: the events in their order, where tasks
//! are, and the work that they have left.

use perch_engine::{Event, EventQueue};
use perch_policy::Host;

use super::{Life, Sched};
use crate::hardware::{C2c, Costs};
use crate::id::TaskId;
use crate::observe::Counts;

/// Time and events.
impl Sched<'_> {
    /// The moment, nanoseconds.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.now
    }

    /// Lets time pass until `now_ns`, before which nothing is pending.
    pub fn pass_to(&mut self, now_ns: u64) {
        self.now = now_ns;
    }

    /// Takes the next event up to `until_ns`; its moment is now. `in_order`: of the events of one
    /// moment the one of the lowest kind and then key, which streaks need; otherwise the one that
    /// was pushed first.
    #[inline]
    pub fn next(&mut self, until_ns: u64, in_order: bool) -> Option<Event> {
        let event = self.events.pop_until(until_ns)?;
        self.now = event.at_ns;
        let event = match in_order {
            false => event,
            // Streaks leave out events: what is left must not depend on when it was pushed.
            true => self.events.exchange_for_least(event, |e| (e.kind, e.key)),
        };
        self.handled = (event.kind, event.key);
        Some(event)
    }

    /// What is pending.
    pub fn events(&self) -> &EventQueue {
        &self.events
    }

    /// The CPU that is at work from now on: it pays for what the kernel does.
    #[inline]
    pub fn act_on(&mut self, cpu: usize) {
        self.acting = cpu;
    }
}

/// CPUs and tasks.
impl Sched<'_> {
    /// How many CPUs there are.
    pub fn nr_cpus(&self) -> usize {
        self.cpus.len()
    }

    /// How many tasks there are, asleep, unborn and dead ones included.
    pub fn nr_tasks(&self) -> usize {
        self.tasks.len()
    }

    /// The task that runs on a CPU.
    #[inline]
    pub fn current(&self, cpu: usize) -> Option<TaskId> {
        self.cpus[cpu].current
    }

    /// The running task of a CPU should give way as soon as possible.
    #[inline]
    pub fn need_resched(&self, cpu: usize) -> bool {
        self.cpus[cpu].need_resched
    }

    /// A CPU's speed, 1024ths.
    pub fn speed_1024(&self, cpu: usize) -> u32 {
        self.cpus[cpu].speed_1024
    }

    /// A CPU's last-level cache, if it shares one.
    pub fn llc(&self, cpu: usize) -> Option<usize> {
        self.cpus[cpu].llc
    }

    /// Lines that tasks brought into a CPU's caches so far.
    pub fn fill(&self, cpu: usize) -> u64 {
        self.cpus[cpu].fill
    }

    /// A task brings so many lines into a CPU's caches.
    pub fn add_fill(&mut self, cpu: usize, lines: u32) {
        self.cpus[cpu].fill += u64::from(lines);
    }

    /// Where a task is in its life.
    #[inline]
    pub fn life(&self, task: TaskId) -> Life {
        self.tasks[task].life
    }

    /// Where a task runs or ran last.
    #[inline]
    pub fn cpu_of_task(&self, task: TaskId) -> usize {
        self.tasks[task].cpu
    }

    /// The CPU where a task's lines are, and that CPU's fill counter when the task left it.
    pub fn warmth(&self, task: TaskId) -> (Option<usize>, u64) {
        let t = &self.tasks[task];
        let warm = t.warm();
        (warm, t.warm_fill)
    }

    /// Lines of its own that a task touches every time it runs.
    pub fn footprint(&self, task: TaskId) -> u32 {
        self.tasks[task].footprint
    }

    /// When a task last became able to run, or was made to wait.
    pub fn waits_since_ns(&self, task: TaskId) -> u64 {
        self.tasks[task].waits_since_ns
    }

    /// What a task has run so far, nanoseconds.
    pub fn ran_ns(&self, task: TaskId) -> u64 {
        let run = self.run_time(task);
        match self.tasks[task].life {
            Life::Running => run.sum_ns + self.now.saturating_sub(run.start_ns),
            _ => run.sum_ns,
        }
    }

    /// The machine as the policy sees it.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// What the hardware charges.
    #[inline]
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Whether last-level caches are modelled: then each stretch of work uses a working set again.
    pub fn models_llcs(&self) -> bool {
        self.llcs.is_some()
    }

    /// What was counted since [`Sched::start_counting`].
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Begins to count anew.
    pub fn start_counting(&mut self) {
        self.take_busy();
        self.counts = Counts::new();
        self.lines.start_counting();
    }

    /// What was counted, and who met whom at contended cache lines.
    pub fn take_counts(&mut self) -> (Counts, Option<Box<C2c>>) {
        let met = self.lines.counted();
        (std::mem::take(&mut self.counts), met)
    }
}

/// The work of tasks. A task that never comes to a CPU of this machine has such an account too: it
/// is the one who carries it that works it off.
impl Sched<'_> {
    /// Work that is left of the operation under way, nanoseconds at full capacity.
    #[inline]
    pub fn left_ns(&self, task: TaskId) -> u64 {
        self.tasks[task].left_ns
    }

    /// Gives a task so much work, instead of what it had.
    #[inline]
    pub fn set_work(&mut self, task: TaskId, work_ns: u64) {
        self.tasks[task].left_ns = work_ns;
    }

    /// Gives a task so much work more.
    pub fn add_work(&mut self, task: TaskId, work_ns: u64) {
        self.tasks[task].left_ns += work_ns;
    }

    /// Gives a task so much work of the kernel's, instead of what it had.
    pub fn set_kernel_work(&mut self, cpu: usize, task: TaskId, work_ns: u64) {
        self.set_work(task, work_ns);
        self.note_kernel(cpu, work_ns);
    }

    /// A task has so much more to do before its next operation, not in the kernel.
    #[inline]
    pub fn charge(&mut self, task: TaskId, work_ns: u64) {
        self.tasks[task].debt_ns += work_ns;
    }

    /// Whether a task has to work before its next operation.
    #[inline]
    pub fn owes_work(&self, task: TaskId) -> bool {
        self.tasks[task].debt_ns > 0
    }

    /// Takes all of a task's work away from it: what is left and what it owes.
    pub fn take_work(&mut self, task: TaskId) -> u64 {
        let t = &mut self.tasks[task];
        std::mem::take(&mut t.left_ns) + std::mem::take(&mut t.debt_ns)
    }

    /// The running task is, or is no longer, in a stretch of kernel code with interrupts off: nobody
    /// takes the CPU from it.
    #[inline]
    pub fn set_atomic(&mut self, task: TaskId, is: bool) {
        self.tasks[task].atomic = is;
    }

    /// Whether the running task is alone on its CPU, as a streak wants it. What it owes for
    /// contended lines is settled.
    pub fn is_alone(&mut self, cpu: usize) -> bool {
        self.settle_lines(cpu);
        self.nr(cpu) == 1 && self.nr_fair(cpu) == 1
    }
}

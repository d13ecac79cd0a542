// SPDX-License-Identifier: GPL-2.0-or-later
//! The CPUs, and what was counted, for the caller that drives a scheduler.

use perch_policy::Host;

use super::Sched;
use super::inbox::Inbox;
use crate::hardware::{C2c, Costs};
use crate::id::TaskId;
use crate::observe::Counts;

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

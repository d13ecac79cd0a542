// SPDX-License-Identifier: GPL-2.0-or-later
//! The real-time class in the table of classes, and what other rooms ask of it.

use perch_policy::Wake;

use crate::class::pelt::Average;
use crate::class::{Class, Yield};
use crate::core::{Life, Sched, Waker};

/// The real-time class's answers.
pub(crate) struct RtClass;

impl Class for RtClass {
    const SWITCHES_PARENT: bool = true;

    #[inline]
    fn enqueue(sched: &mut Sched<'_>, cpu: usize, task: u32, _: bool) {
        sched.enqueue_rt(cpu, task);
    }

    #[inline]
    fn leave(sched: &mut Sched<'_>, cpu: usize, task: u32, life: Life) {
        sched.leave_rt(cpu, task, life);
    }

    #[inline]
    fn pick(sched: &mut Sched<'_>, cpu: usize) -> Option<u32> {
        sched.pick_rt(cpu)
    }

    #[inline]
    fn set_next(sched: &mut Sched<'_>, cpu: usize, task: u32) {
        sched.set_next_rt(cpu, task);
    }

    #[inline]
    fn switched(sched: &mut Sched<'_>, cpu: usize) {
        sched.push_rt(cpu);
    }

    #[inline]
    fn put(sched: &mut Sched<'_>, cpu: usize, task: u32) {
        sched.put_rt(cpu, task);
    }

    #[inline]
    fn goes_on(sched: &mut Sched<'_>, cpu: usize, task: u32) -> bool {
        sched.goes_on_rt(cpu, task)
    }

    #[inline]
    fn yields(sched: &mut Sched<'_>, cpu: usize, task: u32) -> Yield {
        sched.yield_rt(cpu, task)
    }

    #[inline]
    fn check_preempt(sched: &mut Sched<'_>, cpu: usize, wakee: u32) {
        sched.check_preempt_rt(cpu, wakee);
    }

    #[inline]
    fn tick(sched: &mut Sched<'_>, cpu: usize, task: u32) {
        sched.tick_rt(cpu, task);
    }

    #[inline]
    fn update_current(sched: &mut Sched<'_>, cpu: usize, task: u32) {
        sched.account_rt(cpu, task);
    }

    #[inline]
    fn select(sched: &mut Sched<'_>, task: u32, wake: &Wake, waker: Waker) -> (usize, u32) {
        // A real-time task that calls exec stays (`select_task_rq_rt` looks at wake-ups and forks).
        match wake.exec {
            true => (wake.prev_cpu, 0),
            false => (sched.place_rt(task, wake, waker), 0),
        }
    }

    #[inline]
    fn migrate(_: &mut Sched<'_>, _: u32) {}

    fn born(_: &mut Sched<'_>, _: u32, _: usize) {}
}

/// What other rooms ask.
impl Sched<'_> {
    /// Real-time tasks that count as runnable on a CPU: none while the class is throttled there.
    #[inline]
    pub(in crate::class) fn nr_rt(&self, cpu: usize) -> u32 {
        self.cpus[cpu].rt.nr()
    }

    /// The averages of a CPU's real-time tasks.
    pub(in crate::class) fn rt_average(&self, cpu: usize) -> &Average {
        &self.cpus[cpu].rt.average
    }

    /// A task's real-time priority, 0 for a task of another class; and whether the task is the
    /// first of those that wait on its CPU and may run elsewhere.
    pub(crate) fn rt_rank(&self, task: u32) -> (u8, bool) {
        let priority = self.priority(task);
        let pushable = &self.cpus[self.tasks[task as usize].cpu as usize]
            .rt
            .pushable;
        (priority, pushable.first() == Some((priority, task)))
    }

    /// A CPU's real-time tasks that wait, in order.
    pub(crate) fn rt_waiting(&self, cpu: usize) -> impl Iterator<Item = u32> + '_ {
        let c = &self.cpus[cpu];
        let tasks = c.rt.runnable.iter().map(|(_, task)| task);
        tasks.filter(|&task| c.current != Some(task))
    }

    /// At a tick, before any CPU's own.
    #[inline]
    pub(crate) fn tick_all(&mut self) {
        if self.rt.is_some() {
            self.limit_period();
        }
    }

    /// A tick found a task of a class below running, which may have been served its share.
    #[inline]
    pub(in crate::class) fn tick_below(&mut self, cpu: usize) {
        if self.cpus[cpu].rt.limit.serves {
            self.limit_served(cpu);
        }
    }

    /// A periodic pass over a CPU's lowest domain writes down what real-time tasks leave of the CPU
    /// (`scale_rt_capacity`).
    #[inline]
    pub(crate) fn scale_capacity(&mut self, cpu: usize) {
        if self.rt.is_some() {
            self.update_capacity(cpu);
        }
    }
}

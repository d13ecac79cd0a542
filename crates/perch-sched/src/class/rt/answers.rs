// SPDX-License-Identifier: GPL-2.0-or-later
//! The real-time class as an entry of the table of classes.

use perch_policy::Wake;

use crate::class::table::{Class, Yield};
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
    fn select(sched: &mut Sched<'_>, task: u32, wake: &Wake, waker: Waker) -> (usize, u32) {
        // A real-time task that calls exec stays (`select_task_rq_rt` looks at wake-ups and forks
        // only).
        match wake.exec {
            true => (wake.prev_cpu, 0),
            false => (sched.place_rt(task, wake, waker), 0),
        }
    }

    #[inline]
    fn migrate(_: &mut Sched<'_>, _: u32) {}

    fn born(_: &mut Sched<'_>, _: u32, _: usize) {}
}

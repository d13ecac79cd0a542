// SPDX-License-Identifier: GPL-2.0-or-later
//! The fair class as an entry of the table of classes.

use perch_policy::Wake;

use crate::class::pelt::Average;
use crate::class::table::{Class, Yield};
use crate::core::{Life, Sched, Waker};

/// The fair class's answers.
pub(crate) struct FairClass;

impl Class for FairClass {
    const SWITCHES_PARENT: bool = false;

    #[inline]
    fn enqueue(sched: &mut Sched<'_>, cpu: usize, task: u32, moved: bool) {
        sched.enqueue_fair(cpu, task, moved);
    }

    #[inline]
    fn leave(sched: &mut Sched<'_>, cpu: usize, task: u32, life: Life) {
        match life {
            Life::Dead => sched.end_fair(cpu, task),
            _ => sched.sleep_fair(cpu, task, life),
        }
    }

    #[inline]
    fn pick(sched: &mut Sched<'_>, cpu: usize) -> Option<u32> {
        sched.pick_skipping(cpu, false)
    }

    #[inline]
    fn set_next(sched: &mut Sched<'_>, cpu: usize, task: u32) {
        sched.set_next_fair(cpu, task);
    }

    #[inline]
    fn switched(_: &mut Sched<'_>, _: usize) {}

    #[inline]
    fn put(sched: &mut Sched<'_>, cpu: usize, task: u32) {
        sched.put_fair(cpu, task);
    }

    #[inline]
    fn goes_on(_: &mut Sched<'_>, _: usize, _: u32) -> bool {
        false
    }

    #[inline]
    fn yields(sched: &mut Sched<'_>, cpu: usize, task: u32) -> Yield {
        sched.yield_fair(cpu, task)
    }

    #[inline]
    fn check_preempt(sched: &mut Sched<'_>, cpu: usize, wakee: u32) {
        sched.check_preempt_fair(cpu, wakee);
    }

    #[inline]
    fn tick(sched: &mut Sched<'_>, cpu: usize, task: u32) {
        sched.tick_fair(cpu, task);
    }

    #[inline]
    fn select(sched: &mut Sched<'_>, task: u32, wake: &Wake, waker: Waker) -> (usize, u32) {
        let verdict = sched.decide(task, wake, waker);
        (verdict.cpu, verdict.examined)
    }

    #[inline]
    fn migrate(sched: &mut Sched<'_>, task: u32) {
        sched.leave_cpu(task);
    }

    fn born(sched: &mut Sched<'_>, task: u32, cpu: usize) {
        sched.touch_queue(cpu);
        let queue_util = sched.fair.queues[cpu].average.util;
        // A new task counts as always runnable, and as using half of the capacity that its CPU has
        // left.
        let capacity = sched.host.topology().capacity(cpu);
        let spare = capacity.saturating_sub(queue_util) / 2;
        let now = sched.now;
        let se = &mut sched.fair.entities[task as usize];
        se.average = Average::starting(now, se.weight, spare);
        se.vruntime = 0;
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The fair class as an entry of the table of classes.

use perch_policy::Wake;

use crate::class::pelt::Average;
use crate::class::table::{Class, Yield};
use crate::core::{Life, Sched, Waker};
use crate::id::{QueueId, TaskId};

/// The fair class's answers.
pub(crate) struct FairClass;

impl Class for FairClass {
    const SWITCHES_PARENT: bool = false;

    #[inline]
    fn enqueue(sched: &mut Sched<'_>, cpu: usize, task: TaskId, moved: bool) {
        sched.enqueue_fair(cpu, task, moved);
    }

    #[inline]
    fn leave(sched: &mut Sched<'_>, cpu: usize, task: TaskId, life: Life) {
        match life {
            Life::Dead => sched.end_fair(cpu, task),
            _ => sched.sleep_fair(cpu, task, life),
        }
    }

    #[inline]
    fn pick(sched: &mut Sched<'_>, cpu: usize) -> Option<TaskId> {
        sched.pick_skipping(cpu, false)
    }

    #[inline]
    fn set_next(sched: &mut Sched<'_>, cpu: usize, task: TaskId) {
        sched.set_next_fair(cpu, task);
    }

    #[inline]
    fn switched(_: &mut Sched<'_>, _: usize) {}

    #[inline]
    fn put(sched: &mut Sched<'_>, cpu: usize, task: TaskId) {
        sched.put_fair(cpu, task);
    }

    #[inline]
    fn goes_on(_: &mut Sched<'_>, _: usize, _: TaskId) -> bool {
        false
    }

    #[inline]
    fn yields(sched: &mut Sched<'_>, cpu: usize, task: TaskId) -> Yield {
        sched.yield_fair(cpu, task)
    }

    #[inline]
    fn check_preempt(sched: &mut Sched<'_>, cpu: usize, wakee: TaskId) {
        sched.check_preempt_fair(cpu, wakee);
    }

    #[inline]
    fn tick(sched: &mut Sched<'_>, cpu: usize, task: TaskId) {
        sched.tick_fair(cpu, task);
    }

    #[inline]
    fn select(sched: &mut Sched<'_>, task: TaskId, wake: &Wake, waker: Waker) -> (usize, u32) {
        let verdict = sched.decide(task, wake, waker);
        (verdict.cpu, verdict.examined)
    }

    #[inline]
    fn migrate(sched: &mut Sched<'_>, task: TaskId) {
        sched.leave_cpu(task);
    }

    fn born(sched: &mut Sched<'_>, task: TaskId, cpu: usize) {
        sched.touch_queue(cpu);
        let queue = sched.rq.fair.queue_at(sched.rq.tasks[task].group, cpu);
        let own = match queue {
            QueueId::NONE => Average::default(),
            queue => sched.rq.fair.queue(queue).average,
        };
        // A new task counts as always runnable. It probably uses as much for its weight as the
        // others of its queue do, and at most half of the capacity that they leave
        // (`post_init_entity_util_avg`).
        let capacity = sched.host.topology().capacity(cpu);
        let spare = capacity.saturating_sub(own.util) / 2;
        let scale = if sched.rq.rules.born_by_queue {
            1
        } else {
            1024
        };
        let now = sched.rq.now;
        let se = sched.rq.fair.entity_of_mut(task);
        let alike = u64::from(own.util) * u64::from(se.weight) * scale / (u64::from(own.load) + 1);
        let util = match own.util {
            0 => spare,
            _ => alike.min(spare.into()) as u32,
        };
        se.average = Average::starting(now, se.weight, util);
        se.vruntime = 0;
    }
}

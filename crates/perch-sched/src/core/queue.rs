// SPDX-License-Identifier: GPL-2.0-or-later
//! The operations on the run queues as the rest of the scheduler does them: after each, the policy,
//! the cache mechanism's books, the contended lines and the observers learn what changed.

use perch_policy::Mode;

use super::{Life, Sched, kind};
use crate::class::Effect;
use crate::class::table::Yield;
use crate::id::{TaskGroupId, TaskId};
use crate::observe::Observed;

impl Sched<'_> {
    /// Enqueues `task` on `cpu`; `moved` says that it was not woken.
    pub(crate) fn enqueue(&mut self, cpu: usize, task: TaskId, moved: bool) {
        self.end_streak(cpu);
        self.rq.enqueue(cpu, task, moved);
        self.apply();
        if self.caches.mode() == Mode::Upstream {
            self.count_wish(cpu, task, 1);
        }
        if self.rq.nr(cpu) > 0 {
            self.host.set_idle(cpu, false);
        }
        self.publish(cpu);
    }

    /// Takes the running task off its CPU: it sleeps or ends, as `life` says.
    pub(super) fn leave(&mut self, cpu: usize, task: TaskId, life: Life) {
        let departure = self.rq.leave(cpu, task, life);
        if self.notes_turns {
            let ran_ns = self.rq.run_time(task).sum_ns - self.cpus[cpu].turn_start_ns;
            self.rq.task_mut(task).state.turned(ran_ns);
        }
        if self.caches.is_on() {
            self.stops_running(cpu, task);
            self.reserve(cpu, -1);
            if departure.dequeued {
                self.count_wish(cpu, task, -1);
            }
            if life == Life::Dead {
                self.count_thread(task, -1);
            }
        }
        if departure.pulls {
            self.pull_rt(cpu);
        }
    }

    /// Picks the task that runs next on `cpu`, which runs none. Also applies the side effects of the
    /// previous task's departure.
    #[inline(always)]
    pub(super) fn pick(&mut self, cpu: usize) -> Option<TaskId> {
        let next = self.rq.pick(cpu);
        self.apply();
        next
    }

    /// Makes the picked task the running one.
    pub(super) fn set_next(&mut self, cpu: usize, task: TaskId) {
        self.rq.set_next(cpu, task);
        self.apply();
        if self.notes_turns {
            self.cpus[cpu].turn_start_ns = self.rq.run_time(task).sum_ns;
        }
        if self.caches.is_on() {
            self.starts_running(task);
            self.pays_accounting(cpu, task);
        }
        self.publish(cpu);
        self.note_misfit(cpu);
    }

    /// Does what has waited for the end of the switch to the running task.
    #[inline]
    pub(super) fn switched(&mut self, cpu: usize) {
        if self.rq.pushes(cpu) {
            self.push_rt(cpu);
        }
    }

    /// Puts the running task back among those that wait.
    pub(crate) fn put(&mut self, cpu: usize) {
        let Some(task) = self.rq.current(cpu) else {
            return;
        };
        self.rq.put(cpu, task);
        if self.caches.is_on() {
            self.stops_running(cpu, task);
        }
    }

    /// Moves a task that waits on `cpu` to another group's queue there.
    pub(super) fn regroup(&mut self, cpu: usize, task: TaskId, group: Option<TaskGroupId>) {
        self.rq.detach_waiting(task, cpu);
        self.count_wish(cpu, task, -1);
        self.publish(cpu);
        self.rq.join(task, group);
        self.enqueue(cpu, task, true);
    }

    /// Makes the running task yield.
    pub(super) fn yields(&mut self, cpu: usize, task: TaskId) -> Yield {
        let yielded = self.rq.yields(cpu, task);
        self.apply();
        if self.caches.is_on() && matches!(yielded, Yield::Again | Yield::To(_)) {
            self.stops_running(cpu, task);
        }
        if matches!(yielded, Yield::Again) {
            if self.caches.is_on() {
                self.starts_running(task);
            }
            self.publish(cpu);
            self.note_misfit(cpu);
        }
        yielded
    }

    /// Lets `wakee`, which was just enqueued on `cpu`, preempt the running task, or pushes it away.
    #[inline]
    pub(crate) fn check_preempt(&mut self, cpu: usize, wakee: TaskId) {
        let arrival = self.rq.arrives(cpu, wakee);
        self.apply();
        if arrival.preempts {
            self.happened(Observed::Preempted { cpu, wakee });
        }
        if arrival.pushes {
            self.push_rt(cpu);
        }
    }

    /// Handles a tick during which `task` runs.
    pub(super) fn tick_current(&mut self, cpu: usize, task: TaskId) {
        let limited = self.rq.tick(cpu, task);
        if limited {
            self.happened(Observed::RtLimited { cpu });
        }
        self.publish(cpu);
        self.note_misfit(cpu);
    }

    /// Prepares a sleeping task to change its CPU.
    pub(super) fn migrate(&mut self, task: TaskId) {
        if self.rq.migrate(task) {
            self.publish(self.rq.task(task).cpu());
        }
    }

    /// Applies the side effects of the last operations on the run queues.
    #[inline]
    pub(crate) fn apply(&mut self) {
        if self.rq.any_effect() {
            self.apply_effects();
        }
    }

    #[inline(never)]
    fn apply_effects(&mut self) {
        let effects = self.rq.take_effects();
        for &effect in &effects {
            let here = self.acting;
            match effect {
                Effect::Line(symbol, field, access) => self.line(here, symbol, field, access),
                Effect::Levels(first, last) => self.use_levels(here, first, last),
                Effect::Crowded(symbol) => self.set_overload(here, symbol, true),
                Effect::Overloaded(cpu) => self.happened(Observed::RtOverloaded { cpu }),
                Effect::Looked(cpu, loads) => self.happened(Observed::RtLooked { cpu, loads }),
                Effect::Rescheduled(cpu) => self.tell_resched(cpu),
                Effect::Kicked(cpu, late_ns) => self.kick(cpu, late_ns),
                Effect::Fetched { task, from, to } => self.note_fetched(task, from, to),
                Effect::Took(ns) => self.owe(here, ns),
                Effect::Timer { at_ns, key } => self.at(at_ns, kind::EXT, here as u32, key),
                Effect::Paid(task, cpu) => {
                    self.count_wish(cpu, task, -1);
                    self.publish(cpu);
                }
            }
        }
        self.rq.reuse(effects);
    }

    /// Tells the policy which groups have got or lost their only runnable task on a CPU.
    #[inline]
    pub(super) fn tell_groups(&mut self) {
        if self.rq.any_told() {
            for (group, cpu, any) in self.rq.take_told() {
                self.host.set_queued(group, cpu, any);
            }
        }
    }
}

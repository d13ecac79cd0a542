// SPDX-License-Identifier: GPL-2.0-or-later
//! The balancer's passes, done: the balancer says which pass is due and moves the tasks that wait; a
//! CPU that loses its running task switches here.

use super::{Programs, Sched};
use crate::balance::{Idle, Pass};
use crate::hardware::{Access, Field, Symbol};

impl Sched<'_> {
    /// Does the periodic passes of `cpu` over those of its domains that are due. Returns the time
    /// that they take, in nanoseconds.
    pub(super) fn balance_due(
        &mut self,
        programs: &mut dyn Programs,
        cpu: usize,
        idle: bool,
    ) -> u64 {
        let mut passes = self.begin_periodic(cpu, idle);
        while let Some(domain) = self.next_periodic(&mut passes) {
            let moved = self.balance_domain(programs, cpu, domain, passes.idle());
            self.end_periodic_pass(&mut passes, moved);
        }
        self.end_periodic(&passes)
    }

    /// Balances for the idle CPUs, which have no tick.
    pub(super) fn balance_sleepers(&mut self, programs: &mut dyn Programs) {
        let Some(mut sleepers) = self.begin_sleepers() else {
            return;
        };
        while let Some(cpu) = self.next_sleeper(&mut sleepers) {
            let ns = self.balance_due(programs, cpu, true);
            self.end_sleeper(&mut sleepers, cpu, ns);
        }
    }

    /// Does one pass over one domain. Returns the number of tasks that came.
    pub(super) fn balance_domain(
        &mut self,
        programs: &mut dyn Programs,
        cpu: usize,
        domain: usize,
        idle: Idle,
    ) -> u32 {
        let env = self.lb_env(cpu, domain, idle);
        let (mut pass, push) = self.try_domain(&env);
        if push.is_some_and(|source| self.push_running(programs, source, cpu)) {
            pass = Pass::Moved(1);
        }
        self.note_pass(&env, pass)
    }

    /// Moves the running task of `source` to `cpu`, for active balance or exec. Returns whether it
    /// could.
    pub(super) fn push_running(
        &mut self,
        programs: &mut dyn Programs,
        source: usize,
        cpu: usize,
    ) -> bool {
        let Some(task) = self.rq.movable_current(source) else {
            return false;
        };
        if !self.rq.may_run_on(task, cpu) {
            return false;
        }
        if self.rq.runs_ext(source) {
            self.push_running_ext(source, cpu, task);
            self.schedule(programs, source);
            return true;
        }
        // The kernel enqueues the stopper on the CPU of the task that it moves.
        if self.rq.nr(source) == 1 {
            let symbol = Symbol::EnqueueTaskStop;
            self.line(self.acting(), symbol, Field::Overloaded, Access::Load);
        }
        self.stop_segment(source);
        self.leave_caches(source, task);
        self.put(source);
        self.move_waiting(task, source, cpu);
        let here = self.acting();
        self.act_on(source);
        self.schedule(programs, source);
        self.act_on(here);
        true
    }
}

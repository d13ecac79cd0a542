// SPDX-License-Identifier: GPL-2.0-or-later
//! Moving tasks from one queue to another.

use perch_policy::{Level, Mode};

use super::domain::DomainState;
use super::stats::{Imbalance, Migrate};
use super::{Idle, Pass};
use crate::core::{Programs, Sched};
use crate::hardware::{Access, Field, Symbol};

impl Sched<'_> {
    /// Finds the imbalance of a domain, if any, and takes what may move.
    pub(super) fn try_domain(
        &mut self,
        programs: &mut dyn Programs,
        cpu: usize,
        i: usize,
        number: usize,
        idle: Idle,
    ) -> Pass {
        let unequal = self.host.topology().domain(number).asymmetric();
        let worth_it = idle != Idle::Newly || unequal || self.anything_to_take(number);
        if !worth_it && !self.is_wanted(cpu, number) {
            return Pass::Balanced;
        }
        let Some(mut found) = self.find_imbalance(cpu, i, idle) else {
            return Pass::Balanced;
        };
        self.balance.scratch.pinned.clear();
        let level = self.host.topology().domain(number).level();
        let tries = self.nice_tries(number);
        let failed = self.cpus[cpu].balance.domains[i].failed;
        let hot_too = level == Level::Smt || failed > tries;
        let misfit = found.migrate == Migrate::Misfit;
        let mut movable = false;
        // A queue whose tasks may all not come here makes way for the next busiest.
        let source = loop {
            let Some(source) = self.busiest_queue(number, cpu, &found) else {
                break None;
            };
            if source == cpu || self.nr(source) < 2 {
                movable |= source != cpu && self.current_may_come(source, cpu);
                break Some(source);
            }
            let current = misfit && self.current_may_come(source, cpu);
            if current || self.any_may_come(source, cpu) {
                movable = true;
                break Some(source);
            }
            self.balance.scratch.pinned.push(source as u32);
        };
        let Some(source) = source else {
            return Pass::Balanced;
        };
        // A queue of one keeps it, even while it only waits for its idle CPU to wake up.
        let spare = source != cpu && self.nr(source) > 1;
        let (moved, kept) = if spare {
            self.pull(source, cpu, i, &mut found, hot_too, idle)
        } else {
            (0, false)
        };
        if moved > 0 {
            return Pass::Moved(moved);
        }
        if misfit {
            return match self.current_may_come(source, cpu)
                && self.push_misfit(programs, source, cpu)
            {
                true => Pass::Moved(1),
                false => Pass::Pinned,
            };
        }
        if !movable {
            return Pass::Balanced;
        }
        let held = self.is_held(source, cpu, found.migrate, unequal);
        if found.migrate == Migrate::Wanted && !held && self.push_wanted(programs, source, cpu) {
            return Pass::Moved(1);
        }
        let failed = failed + u32::from(idle != Idle::Newly && !kept);
        let pushes = self.rules.balance.pushes_for_all || found.migrate == Migrate::Task;
        let stubborn = pushes && !held && failed > tries + 2;
        if stubborn && self.push_running(programs, source, cpu) {
            return Pass::Moved(1);
        }
        if kept { Pass::Kept } else { Pass::Failed }
    }

    /// How many passes over a domain may fail before hot tasks are moved too
    /// (`cache_nice_tries`).
    pub(super) fn nice_tries(&self, number: usize) -> u32 {
        match self.host.topology().domain(number).level() {
            Level::Numa => 2,
            _ => 1,
        }
    }

    fn current_may_come(&self, source: usize, cpu: usize) -> bool {
        let current = self.fair_current(source);
        current.is_some_and(|t| self.may_run_on(t, cpu))
    }

    pub(crate) fn may_run_on(&self, task: u32, cpu: usize) -> bool {
        self.affinities[self.tasks[task as usize].affinity as usize].contains(cpu)
    }

    fn any_may_come(&self, source: usize, cpu: usize) -> bool {
        !self.each_waiting(source, &mut |task| !self.may_run_on(task, cpu))
    }

    /// Takes waiting tasks, the one whose turn was longest ago first, until the imbalance is gone.
    /// Returns how many, and in 7.2's form of the cache mechanism whether any stayed for the sake
    /// of its LLC, which is no failure of the pass.
    fn pull(
        &mut self,
        source: usize,
        cpu: usize,
        i: usize,
        found: &mut Imbalance,
        hot_too: bool,
        idle: Idle,
    ) -> (u32, bool) {
        let DomainState { failed, domain, .. } = self.cpus[cpu].balance.domains[i];
        let unequal = self.host.topology().domain(domain as usize).asymmetric();
        let (mut moved, mut kept) = (0, false);
        let mut after = self.first_turn();
        for _ in 0..self.rules.balance.nr_migrate.min(self.nr(source)) {
            if idle != Idle::Busy && self.nr(source) <= 1 || found.amount <= 0 {
                break;
            }
            let Some((turn, task)) = self.coldest(source, after) else {
                break;
            };
            after = turn;
            let hot =
                self.ran_since_ns(task) < self.rules.migration_cost_ns || self.is_buddy(cpu, task);
            if !self.may_run_on(task, cpu) || self.is_delayed(task) {
                continue;
            }
            if !hot_too && self.is_kept(task, source, cpu, found.migrate, unequal) {
                kept |= self.caches.mode() == Mode::Upstream && found.migrate != Migrate::Wanted;
                continue;
            }
            if hot && !hot_too {
                continue;
            }
            let load = i64::from(self.task_load(task).max(1));
            let util = i64::from(self.expected_util(task));
            let cost = match found.migrate {
                Migrate::Task => 1,
                Migrate::Util if util > found.amount => continue,
                Migrate::Util => util,
                Migrate::Load if self.is_too_much(load, found.amount, failed, hot_too) => continue,
                Migrate::Load => load,
                Migrate::Misfit if self.fits(task, source) => continue,
                Migrate::Misfit => found.amount,
                Migrate::Wanted => 1,
            };
            found.amount -= cost;
            self.move_waiting(task, source, cpu);
            moved += 1;
        }
        (moved, kept)
    }

    /// Whether a task's load is too much for the imbalance, after so many failed passes.
    fn is_too_much(&self, load: i64, amount: i64, failed: u32, tried: bool) -> bool {
        match self.rules.balance.load_by_failures {
            true => load >> failed.min(20) > amount,
            false => load / 2 > amount && (!tried || self.rules.balance.by_weight),
        }
    }

    /// Moves a waiting task to another CPU's queue.
    pub(super) fn move_waiting(&mut self, task: u32, from: usize, to: usize) {
        self.update_current(from);
        assert!(
            self.may_run_on(task, to),
            "task {task} is moved to cpu {to}, which it may not use"
        );
        self.detach_waiting(task, from);
        if self.cpus[from].llc != self.cpus[to].llc {
            self.reserve(from, -1);
            self.reserve(to, 1);
        }
        let distance = self.costs.distance(from, to);
        self.counts.balanced[distance as usize] += 1;
        self.enqueue(to, task, true);
        self.check_preempt(to, task);
        // A CPU that balances for itself looks at its queue next; a sleeping one must be told.
        if self.is_asleep(to) {
            self.send_ipi(to, to, 0);
        }
    }

    /// Active balance and exec: the running task itself moves. Returns whether it could.
    pub(crate) fn push_running(
        &mut self,
        programs: &mut dyn Programs,
        source: usize,
        cpu: usize,
    ) -> bool {
        let Some(task) = self.fair_current(source) else {
            return false;
        };
        if !self.may_run_on(task, cpu) {
            return false;
        }
        // The stopper comes to the queue of the task that it moves.
        if self.nr(source) == 1 {
            let symbol = Symbol::EnqueueTaskStop;
            self.line(self.acting, symbol, Field::Overloaded, Access::Load);
        }
        self.stop_segment(source);
        self.leave_caches(source, task);
        self.put(source);
        self.move_waiting(task, source, cpu);
        let here = std::mem::replace(&mut self.acting, source);
        self.schedule(programs, source);
        self.acting = here;
        true
    }
}

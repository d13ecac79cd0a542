// SPDX-License-Identifier: GPL-2.0-only
//! Moving tasks from one queue to another.

use perch_policy::Level;

use super::stats::{Imbalance, Migrate};
use super::{Idle, Kernel, Pass};
use crate::kernel::era::FairRules;
use crate::kernel::task::Life;
use crate::kernel::{cfs, eevdf};

impl Kernel<'_> {
    /// Finds the imbalance of a domain, if any, and takes what may move.
    pub(super) fn try_domain(&mut self, cpu: usize, i: usize, number: usize, idle: Idle) -> Pass {
        let unequal = self.host.topology().domain(number).asymmetric();
        if idle == Idle::Newly && !unequal && !self.anything_to_take(number) {
            return Pass::Balanced;
        }
        let Some(mut found) = self.find_imbalance(cpu, i, idle) else {
            return Pass::Balanced;
        };
        self.scratch.pinned.clear();
        let level = self.host.topology().domain(number).level();
        let tries = if level == Level::Numa { 2 } else { 1 };
        let failed = self.cpus[cpu].domains[i].failed;
        let hot_too = level == Level::Smt || failed > tries;
        let misfit = found.migrate == Migrate::Misfit;
        let mut movable = false;
        // A queue whose tasks may all not come here makes way for the next busiest.
        let source = loop {
            let Some(source) = self.busiest_queue(number, cpu, &found) else {
                break None;
            };
            if source == cpu || self.cpus[source].fair.nr < 2 {
                movable |= source != cpu && self.current_may_come(source, cpu);
                break Some(source);
            }
            let current = misfit && self.current_may_come(source, cpu);
            if current || self.any_may_come(source, cpu) {
                movable = true;
                break Some(source);
            }
            self.scratch.pinned.push(source as u32);
        };
        let Some(source) = source else {
            return Pass::Balanced;
        };
        // A queue of one keeps it, even while it only waits for its idle CPU to wake up.
        let spare = source != cpu && self.cpus[source].fair.nr > 1;
        let moved = if spare {
            self.pull(source, cpu, &mut found, hot_too, failed, idle)
        } else {
            0
        };
        if moved > 0 {
            return Pass::Moved(moved);
        }
        if misfit {
            return match self.current_may_come(source, cpu) && self.push_misfit(source, cpu) {
                true => Pass::Moved(1),
                false => Pass::Pinned,
            };
        }
        if !movable {
            return Pass::Balanced;
        }
        let failed = failed + u32::from(idle != Idle::Newly);
        let pushes = self.rules.balance.pushes_for_all || found.migrate == Migrate::Task;
        let stubborn = pushes && failed > tries + 2;
        if stubborn && self.push_running(source, cpu) {
            return Pass::Moved(1);
        }
        Pass::Failed
    }

    pub(super) fn current_may_come(&self, source: usize, cpu: usize) -> bool {
        let current = self.cpus[source].current;
        current.is_some_and(|t| self.may_run_on(t, cpu))
    }

    pub(super) fn may_run_on(&self, task: u32, cpu: usize) -> bool {
        self.affinities[self.tasks[task as usize].affinity as usize].contains(cpu)
    }

    fn any_may_come(&self, source: usize, cpu: usize) -> bool {
        let mut waiting = self.cpus[source].fair.timeline.iter();
        waiting.any(|w| self.may_run_on(w.task, cpu))
    }

    /// Takes waiting tasks, the one whose turn was longest ago first, until the imbalance is gone.
    fn pull(
        &mut self,
        source: usize,
        cpu: usize,
        found: &mut Imbalance,
        hot_too: bool,
        failed: u32,
        idle: Idle,
    ) -> u32 {
        let mut moved = 0;
        let mut after = 0;
        for _ in 0..self.rules.balance.nr_migrate.min(self.cpus[source].fair.nr) {
            if idle != Idle::Busy && self.cpus[source].fair.nr <= 1 || found.amount <= 0 {
                break;
            }
            let Some((turn, task)) = self.coldest(source, after) else {
                break;
            };
            after = turn;
            let ran = self.tasks[task as usize].se.exec_start_ns;
            let hot = self.now.saturating_sub(ran) < self.rules.migration_cost_ns
                || self.is_buddy(source, cpu, task);
            let t = &self.tasks[task as usize];
            if !self.may_run_on(task, cpu) || t.se.delayed || (hot && !hot_too) {
                continue;
            }
            let util = i64::from(t.se.est());
            let load = i64::from(t.se.average.load.max(1));
            let cost = match found.migrate {
                Migrate::Task => 1,
                Migrate::Util if util > found.amount => continue,
                Migrate::Util => util,
                Migrate::Load if self.is_too_much(load, found.amount, failed, hot_too) => continue,
                Migrate::Load => load,
                Migrate::Misfit if self.fits(task, source) => continue,
                Migrate::Misfit => found.amount,
            };
            found.amount -= cost;
            self.move_waiting(task, source, cpu);
            moved += 1;
        }
        moved
    }

    /// Whether a task's load is too much for the imbalance, after so many failed passes.
    fn is_too_much(&self, load: i64, amount: i64, failed: u32, tried: bool) -> bool {
        match self.rules.balance.load_by_failures {
            true => load >> failed.min(20) > amount,
            false => load / 2 > amount && !tried,
        }
    }

    /// The next buddy of a queue counts as hot while the destination has something to run.
    fn is_buddy(&self, source: usize, cpu: usize, task: u32) -> bool {
        let fair = &self.cpus[source].fair;
        let buddy = fair.next_buddy == Some(task) || fair.last_buddy == Some(task);
        buddy && self.cpus[cpu].fair.nr > 0
    }

    /// The waiting task that was queued or picked least recently, among those after `after`.
    pub(super) fn coldest(&self, source: usize, after: u64) -> Option<(u64, u32)> {
        let waiting = self.cpus[source].fair.timeline.iter();
        let turns = waiting.map(|w| (self.tasks[w.task as usize].se.turn, w.task));
        turns.filter(|&(turn, _)| turn > after).min()
    }

    /// Moves a waiting task to another CPU's queue.
    pub(super) fn move_waiting(&mut self, task: u32, from: usize, to: usize) {
        self.update_current(from);
        self.touch_queue(from);
        self.touch_task(task);
        if let FairRules::Eevdf { slice_ns } = self.rules.fair {
            let current = self.cpus[from].current.map(|t| self.tasks[t as usize].se);
            let se = self.tasks[task as usize].se;
            let fair = &self.cpus[from].fair;
            let limit_ns = self.rules.lag.ns(slice_ns, self.tick_ns);
            self.tasks[task as usize].se.vlag = eevdf::lag(fair, current.as_ref(), &se, limit_ns);
        }
        self.remove_waiting(from, task);
        self.leave_queue(from, task);
        self.tasks[task as usize].life = Life::Waking;
        self.leave_cpu(task);
        if let FairRules::Cfs { .. } = self.rules.fair {
            let current = self.cpus[from]
                .current
                .map(|t| self.tasks[t as usize].se.vruntime);
            cfs::update_floor(&mut self.cpus[from].fair, current);
        }
        let distance = self.costs.distance(from, to);
        self.metrics.balanced[distance as usize] += 1;
        self.enqueue(to, task, true);
        self.check_preempt(to, task);
        // A CPU that balances for itself looks at its queue next; a sleeping one must be told.
        if self.cpus[to].idle {
            self.send_ipi(to, to, 0);
        }
    }

    /// Active balance and exec: the running task itself moves. Returns whether it could.
    pub(in crate::kernel) fn push_running(&mut self, source: usize, cpu: usize) -> bool {
        let Some(task) = self.cpus[source].current else {
            return false;
        };
        if !self.may_run_on(task, cpu) {
            return false;
        }
        self.stop_segment(source);
        self.leave_caches(source, task);
        self.put_current(source);
        self.move_waiting(task, source, cpu);
        self.schedule(source);
        true
    }
}

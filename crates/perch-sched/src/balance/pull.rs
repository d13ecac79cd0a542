// SPDX-License-Identifier: GPL-2.0-or-later
//! A pass over one domain: it finds an imbalance, and pulls tasks until that is gone.

use crate::era::{MIGRATION_COST_NS, NR_MIGRATE};
use perch_policy::{Change, Mode};

use super::domain::{DomainState, nice_tries};
use super::imbalance::{Idle, Imbalance, LbEnv, Migrate};
use crate::core::Sched;
use crate::era::Preemption;

/// The result of a pass.
pub(crate) enum Pass {
    /// The domain is balanced, or no task may move: the CPU waits longer.
    Balanced,
    /// This number of tasks came.
    Moved(u32),
    /// There is an imbalance, but no task could be moved.
    Failed,
    /// There is a misfit, but it may not run here.
    Pinned,
    /// There is an imbalance, but the tasks that could be moved prefer to stay in their LLC.
    Kept,
}

impl Sched<'_> {
    /// Finds the imbalance of a domain, if there is one, and pulls the waiting tasks that may move.
    /// Returns the result, and the CPU whose running task should come all the same (active balance), for
    /// the core to push: the pass has moved a task then.
    #[inline(always)]
    pub(crate) fn try_domain(&mut self, env: &LbEnv) -> (Pass, Option<usize>) {
        let &LbEnv { cpu, level, domain, idle, unequal } = env;
        let worth_it = idle != Idle::Newly || unequal || self.anything_to_take(domain);
        if !worth_it && !self.is_wanted(cpu, domain) {
            self.note_overload(cpu, level);
            return (Pass::Balanced, None);
        }
        let Some(mut found) = self.find_imbalance(env) else {
            return (Pass::Balanced, None);
        };
        self.balance.scratch.pinned.clear();
        let tries = nice_tries(self.host.topology(), domain);
        let DomainState { failed, is_core, .. } = self.balance.cpus[cpu].domains[level];
        let hot_too = is_core || failed > tries;
        let misfit = found.migrate == Migrate::Misfit;
        let mut movable = false;
        // If no task of a queue may come here, the pass turns to the next busiest queue.
        let source = loop {
            let Some(source) = self.busiest_queue(env, &found) else {
                break None;
            };
            if source == cpu || self.rq.nr(source) < 2 {
                movable |= source != cpu && self.current_may_come(source, cpu);
                break Some(source);
            }
            let current = misfit && self.current_may_come(source, cpu);
            if current || self.any_may_come(source, cpu) {
                movable = true;
                break Some(source);
            }
            self.balance.scratch.pinned.add(source);
        };
        let Some(source) = source else {
            return (Pass::Balanced, None);
        };
        // A queue of one keeps its task, even while the task only waits for its idle CPU to wake
        // up.
        let spare = source != cpu && self.rq.nr(source) > 1;
        let (moved, kept) =
            if spare { self.pull(env, source, &mut found, hot_too) } else { (0, false) };
        if moved > 0 {
            return (Pass::Moved(moved), None);
        }
        if misfit {
            return match self.current_may_come(source, cpu) {
                true if self.pull_misfit(source, cpu) => (Pass::Moved(1), None),
                true => (Pass::Pinned, Some(source)),
                false => (Pass::Pinned, None),
            };
        }
        if !movable {
            return (Pass::Balanced, None);
        }
        let held = self.is_held(env, source, found.migrate);
        let wanted = found.migrate == Migrate::LlcTask && !held;
        if wanted && self.pull_wanted(source, cpu) {
            return (Pass::Moved(1), None);
        }
        let failed = failed + u32::from(idle != Idle::Newly && !kept);
        let pushes = !self.rules().has(Change::PushesForTasks) || found.migrate == Migrate::Task;
        let stubborn = pushes && !held && failed > tries + 2;
        let pushes = stubborn || wanted && self.current_is_wanted(source, cpu);
        (if kept { Pass::Kept } else { Pass::Failed }, pushes.then_some(source))
    }

    fn current_may_come(&self, source: usize, cpu: usize) -> bool {
        let current = self.rq.fair_current(source);
        current.is_some_and(|t| self.rq.may_run_on(t, cpu))
    }

    fn any_may_come(&self, source: usize, cpu: usize) -> bool {
        !self.rq.each_waiting(source, &mut |task| !self.rq.may_run_on(task, cpu))
    }

    /// Pulls waiting tasks, the one whose turn was longest ago first, until the imbalance is gone.
    /// Returns their number, and, in 7.2's form of the cache mechanism, whether any stayed for the
    /// sake of its LLC, which does not make the pass a failed one.
    fn pull(
        &mut self,
        env: &LbEnv,
        source: usize,
        found: &mut Imbalance,
        hot_too: bool,
    ) -> (u32, bool) {
        let &LbEnv { cpu, level, idle, .. } = env;
        let failed = self.balance.cpus[cpu].domains[level].failed;
        let shift = if self.rules().has(Change::UtilByFailures) { failed.min(20) } else { 0 };
        let moves_delayed = self.rules().has(Change::MovesDelayed);
        let (mut moved, mut kept) = (0, false);
        let mut after = self.rq.first_turn();
        for _ in 0..NR_MIGRATE.min(self.rq.nr(source)) {
            if idle != Idle::Busy && self.rq.nr(source) <= 1 || found.amount <= 0 {
                break;
            }
            let Some((turn, task)) = self.rq.coldest(source, after) else {
                break;
            };
            after = turn;
            let hot = self.rq.ran_since_ns(task) < MIGRATION_COST_NS || self.rq.is_buddy(cpu, task);
            let delayed = self.rq.is_delayed(task);
            let stays = delayed && !(moves_delayed && found.migrate == Migrate::Load);
            if stays
                || failed == 0 && self.rq.owes_time(task, cpu)
                || !self.rq.may_run_on(task, cpu)
            {
                continue;
            }
            if !hot_too && self.is_kept(env, task, source, found.migrate) {
                kept |= self.caches.mode() == Mode::Upstream && found.migrate != Migrate::LlcTask;
                continue;
            }
            if hot && !hot_too {
                continue;
            }
            let load = i64::from(self.rq.task_load(task).max(1));
            let util = i64::from(self.rq.expected_util(task).max(self.rq.task_average(task).util));
            let cost = match found.migrate {
                Migrate::Task => 1,
                Migrate::Util if util >> shift > found.amount => continue,
                Migrate::Util => util,
                Migrate::Load if self.is_too_much(load, found.amount, failed, hot_too) => continue,
                Migrate::Load => load,
                Migrate::Misfit if self.fits(task, source) => continue,
                Migrate::Misfit => found.amount,
                Migrate::LlcTask => 1,
            };
            found.amount -= cost;
            self.move_waiting(task, source, cpu);
            moved += 1;
            // A newly idle CPU keeps its run queue's lock for one task only, where the kernel can be
            // preempted.
            if idle == Idle::Newly && self.rules().preemption != Preemption::Voluntary {
                break;
            }
        }
        (moved, kept)
    }

    /// Returns whether a task's load is too much for an imbalance of `amount`, after `failed`
    /// failed passes.
    fn is_too_much(&self, load: i64, amount: i64, failed: u32, tried: bool) -> bool {
        if self.rules().has(Change::LoadByFailures) {
            load >> failed.min(20) > amount
        } else {
            load / 2 > amount && (!tried || self.rules().by_weight())
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Balancing and last-level caches: the statistics by which cache-aware wake-up is inhibited, the
//! tasks that stay where they are, and 7.2's balancing towards the LLCs that tasks prefer
//! (docs/mechanisms/cache.md#upstream; read in 7.2.13).

use perch_policy::{Mode, Move};

use super::domain::nice_tries;
use super::imbalance::{LbEnv, Migrate};
use crate::core::Sched;
use crate::id::TaskId;

impl Sched<'_> {
    /// Writes the statistics of all LLCs of a domain, if its groups are LLCs. Only periodic passes
    /// do so: the figures that wake-ups compare are as old as the domain's interval, which is its
    /// weight in milliseconds, up to twice that, and 16 times as much from a busy CPU.
    pub(super) fn note_llcs(&mut self, number: usize) {
        for g in 0..self.caches.groups_of(number).len() {
            let llc = self.caches.groups_of(number)[g];
            let shape = &self.balance.groups.of_domain(number)[g];
            let sums = self.balance.groups.sums(shape, self.host.cpus());
            self.host.note_llc(llc, sums.util as u32, sums.running as u32);
            self.caches.note(llc, self.rq.now());
        }
    }

    /// Returns whether the mechanism wants `task` to stay on `source`. If so, the task counts as
    /// cache-hot, until passes have failed.
    pub(super) fn is_kept(
        &mut self,
        env: &LbEnv,
        task: TaskId,
        source: usize,
        migrate: Migrate,
    ) -> bool {
        let cpu = env.cpu;
        let t = self.rq.task(task);
        let mut state = t.state;
        match self.caches.mode() {
            Mode::Off => return false,
            Mode::Posted => {}
            Mode::Upstream => {
                let here = self.llc(cpu);
                if migrate == Migrate::LlcTask && t.cache.wants() != here {
                    return true;
                }
                if env.unequal && !self.fits(task, cpu) && self.fits(task, source) {
                    return true;
                }
                state.util = self.rq.task_average(task).util;
            }
            // A larger CPU is worth more than a near cache.
            Mode::Perch if migrate == Migrate::Misfit => return false,
            Mode::Perch => {}
        }
        self.host.cache_move(&self.policy, &state, source, cpu) == Move::Stay
    }

    /// Returns whether the mechanism keeps active balance from pushing the running task of `source`
    /// to the balancing CPU. Mode posted never does: it knows only of tasks that wait.
    pub(super) fn is_held(&mut self, env: &LbEnv, source: usize, migrate: Migrate) -> bool {
        let Some(current) = self.rq.fair_current(source) else {
            return false;
        };
        let home = self.llc(source);
        if home == self.llc(env.cpu) || migrate == Migrate::Misfit {
            return false;
        }
        match self.caches.mode() {
            Mode::Off | Mode::Posted => false,
            Mode::Perch => self.is_kept(env, current, source, migrate),
            // The mechanism holds the task only where every task would rather stay.
            Mode::Upstream => {
                let at_home = |t: TaskId| home.is_some() && self.rq.task(t).cache.wants() == home;
                let stays = |t: TaskId| self.rq.is_delayed(t) || at_home(t);
                self.rq.each_waiting(source, &mut |t| stays(t))
                    && at_home(current)
                    && (self.rq.nr_fair(source) <= 1 || self.is_kept(env, current, source, migrate))
            }
        }
    }

    /// Mode upstream: returns whether tasks wait anywhere else for a pass of `cpu` over this domain
    /// to bring them to the LLC that they prefer.
    pub(super) fn is_wanted(&self, cpu: usize, number: usize) -> bool {
        self.caches.mode() == Mode::Upstream
            && !self.host.topology().domain(number).shares_llc()
            && self.llc(cpu).is_some_and(|llc| self.caches.away(llc) > 0)
    }

    /// Mode upstream: returns the group of a domain with most tasks that prefer the balancing CPU's
    /// LLC, if the load of the two LLCs lets them come. After as many failed passes as make hot
    /// tasks movable, preferences no longer count.
    pub(super) fn wanted_group(&mut self, env: &LbEnv) -> Option<usize> {
        if !self.is_wanted(env.cpu, env.domain) {
            return None;
        }
        let here = self.llc(env.cpu)?;
        let state = &self.balance.cpus[env.cpu].domains[env.level];
        let local = state.local_group;
        if state.failed > nice_tries(self.host.topology(), env.domain) {
            return None;
        }
        let topology = self.host.topology().clone();
        let domain = topology.domain(env.domain);
        let mut most: Option<(usize, u32)> = None;
        for g in (local + 1..domain.groups()).chain(0..local) {
            let group = domain.group(g);
            let elsewhere = group.iter().filter(|&c| self.llc(c) != Some(here));
            let wanting = elsewhere.map(|c| self.caches.wanting(c, here)).sum();
            if most.map_or(0, |(_, than)| than) >= wanting {
                continue;
            }
            let misfit = |c: usize| self.balance.cpus[c].misfit > 0;
            if env.unequal && group.iter().any(misfit) {
                continue;
            }
            let there = group.iter().next().and_then(|c| topology.llc(c));
            if there.is_some_and(|there| self.host.llc_draws(there, here)) {
                most = Some((g, wanting));
            }
        }
        most.map(|(g, _)| g)
    }

    /// Returns the number of tasks on the queue of `source` that prefer the LLC of `cpu`.
    pub(crate) fn wanting(&self, source: usize, cpu: usize) -> u32 {
        let here = self.llc(cpu);
        here.map_or(0, |llc| self.caches.wanting(source, llc))
    }

    /// Active balance for a task that prefers the balancing CPU's LLC: moves the one that has waited
    /// longest. Returns whether a task moved.
    pub(super) fn pull_wanted(&mut self, source: usize, cpu: usize) -> bool {
        let here = self.llc(cpu);
        let mut after = self.rq.first_turn();
        while let Some((turn, task)) = self.rq.coldest(source, after) {
            after = turn;
            let wants = self.rq.task(task).cache.wants();
            let delayed = self.rq.is_delayed(task);
            if self.rq.may_run_on(task, cpu) && !delayed && wants == here {
                self.move_waiting(task, source, cpu);
                return true;
            }
        }
        false
    }

    /// Returns whether the running task of `source` prefers the LLC of `cpu`.
    pub(super) fn current_is_wanted(&self, source: usize, cpu: usize) -> bool {
        let current = self.rq.fair_current(source);
        current.is_some_and(|t| self.rq.task(t).cache.wants() == self.llc(cpu))
    }
}

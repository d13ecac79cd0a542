// SPDX-License-Identifier: GPL-2.0-only
//! Load balancing: when a pass over a domain is due, and what becomes of its outcome
//! (mechanisms.md §8, "Balance").
//!
//! Left out: tasks pinned to one CPU of a group marking the group as imbalanced, asymmetric
//! packing and misfit tasks, NUMA balancing's preferred nodes, and the time a pass takes on a CPU
//! that then stays idle.

mod pull;
mod stats;
mod sums;

use super::Kernel;
use super::queue::DomainState;

pub(super) use stats::Scratch;
pub(super) use sums::{Groups, Sums};

/// In what state a CPU balances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Idle {
    /// It runs something.
    Busy,
    /// It is idle, and its time has come.
    Idle,
    /// It has just run out of tasks.
    Newly,
}

/// What came of looking for an imbalance.
enum Pass {
    /// Nothing to do, or nothing that may move: wait longer.
    Balanced,
    /// So many tasks came.
    Moved(u32),
    /// There is an imbalance, but nothing could be moved.
    Failed,
}

impl Kernel<'_> {
    /// Periodic passes of one CPU over those of its domains that are due.
    pub(super) fn balance_due(&mut self, cpu: usize, mut idle: bool) {
        let mut next = self.now + 60_000_000_000;
        let mut cost = 0;
        for i in 0..self.cpus[cpu].domains.len() {
            self.decay_newidle_cost(cpu, i);
            cost += self.cpus[cpu].domains[i].newidle_cost_ns;
            let mut interval = self.interval_ns(cpu, i, idle);
            if self.now >= self.cpus[cpu].domains[i].last_ns + interval {
                let kind = if idle { Idle::Idle } else { Idle::Busy };
                if self.balance_domain(cpu, i, kind) > 0 {
                    idle = self.cpus[cpu].current.is_none() && self.cpus[cpu].fair.nr == 0;
                }
                self.cpus[cpu].domains[i].last_ns = self.now;
                interval = self.interval_ns(cpu, i, idle);
            }
            next = next.min(self.cpus[cpu].domains[i].last_ns + interval);
        }
        self.cpus[cpu].next_balance_ns = next;
        self.cpus[cpu].max_idle_cost_ns = cost.max(self.rules.migration_cost_ns);
    }

    /// Time between two passes: the span's weight in milliseconds, more while all is well, and
    /// much more for a busy CPU.
    fn interval_ns(&self, cpu: usize, i: usize, idle: bool) -> u64 {
        let mut interval = self.cpus[cpu].domains[i].interval_ns;
        if !idle {
            // One tick less, so that busy levels do not fall due together for ever.
            interval = (interval * self.rules.busy_factor).saturating_sub(self.tick_ns);
        }
        interval.clamp(self.tick_ns, 100_000_000 * self.cpus.len() as u64)
    }

    /// One pass over one domain; returns how many tasks came.
    fn balance_domain(&mut self, cpu: usize, i: usize, idle: Idle) -> u32 {
        let number = self.cpus[cpu].domains[i].domain as usize;
        let weight = u64::from(self.host.topology().domain(number).span().weight());
        if idle != Idle::Newly && !self.should_balance(cpu, i) {
            return 0;
        }
        let pass = self.try_domain(cpu, i, number, idle);
        let state: &mut DomainState = &mut self.cpus[cpu].domains[i];
        let least = weight * 1_000_000;
        match pass {
            Pass::Balanced => {
                state.failed = 0;
                if idle != Idle::Newly && state.interval_ns < 2 * least {
                    state.interval_ns *= 2;
                }
                0
            }
            Pass::Moved(tasks) => {
                state.failed = 0;
                state.interval_ns = least;
                tasks
            }
            Pass::Failed => {
                state.interval_ns = least;
                if idle != Idle::Newly {
                    state.failed += 1;
                }
                0
            }
        }
    }

    /// One CPU balances for its group: the first idle one, else the first. An idle core comes
    /// before an idle thread.
    fn should_balance(&self, cpu: usize, i: usize) -> bool {
        let topology = self.host.topology();
        let state = &self.cpus[cpu].domains[i];
        let local = topology.domain(state.domain as usize).group(state.local_group as usize);
        let mut thread = None;
        for c in local.iter().filter(|&c| self.host.is_idle(c)) {
            if !topology.has_smt() || topology.core_span(c).iter().all(|s| self.host.is_idle(s)) {
                return c == cpu;
            }
            thread.get_or_insert(c);
        }
        thread.or(local.iter().next()) == Some(cpu)
    }

    /// A CPU ran out of tasks: looks for one nearby, if CPUs like it usually idle long enough
    /// for that to pay. Returns whether a task came.
    pub(super) fn balance_newidle(&mut self, cpu: usize) -> bool {
        let avg_idle = self.cpus[cpu].avg_idle_ns;
        let first = self.cpus[cpu].domains.first().map_or(u64::MAX, |d| d.newidle_cost_ns);
        if !self.overload || avg_idle < first {
            return false;
        }
        let mut spent = 0;
        let mut pulled = false;
        for i in 0..self.cpus[cpu].domains.len() {
            let d = self.cpus[cpu].domains[i];
            if avg_idle < spent + d.newidle_cost_ns {
                break;
            }
            if self.rules.newidle_by_success && !self.newidle_by_chance(cpu, i) {
                continue;
            }
            pulled = self.balance_domain(cpu, i, Idle::Newly) > 0;
            if pulled {
                self.cpus[cpu].domains[i].newidle_success += 1;
            }
            let span = self.host.topology().domain(d.domain as usize).span().weight();
            let cost = self.costs.balance_ns(span);
            let d = &mut self.cpus[cpu].domains[i];
            d.newidle_cost_ns = d.newidle_cost_ns.max(cost);
            spent += cost;
            if pulled || self.cpus[cpu].fair.nr > 0 {
                break;
            }
        }
        let c = &mut self.cpus[cpu];
        c.max_idle_cost_ns = c.max_idle_cost_ns.max(spent);
        if let Some(first) = c.fair.timeline.first() {
            self.tasks[first.task as usize].debt_ns += spent;
        }
        pulled
    }

    /// 7.2: a domain is tried as often as tries succeeded there lately, half of the time at
    /// first; never less than once in 32.
    fn newidle_by_chance(&mut self, cpu: usize, i: usize) -> bool {
        let d = &mut self.cpus[cpu].domains[i];
        d.newidle_calls += 1;
        if d.newidle_calls >= 1024 {
            d.newidle_calls /= 2;
            d.newidle_success /= 2;
        }
        let ratio = 1024 * (d.newidle_success + 1) / (d.newidle_calls + 2);
        self.random.below(1024) < u64::from(ratio.max(32))
    }

    /// What a newidle pass has cost at most fades by about 1 % a second.
    fn decay_newidle_cost(&mut self, cpu: usize, i: usize) {
        let d = &mut self.cpus[cpu].domains[i];
        if self.now > d.newidle_decay_ns + 1_000_000_000 {
            d.newidle_decay_ns = self.now;
            d.newidle_cost_ns = d.newidle_cost_ns * 253 / 256;
        }
    }

    /// Idle CPUs have no tick: a busy one notices that balancing is due and lets one of them do
    /// it for all.
    pub(super) fn balance_sleepers(&mut self) {
        if self.now < self.nohz_next_ns || !self.nohz_kick() {
            return;
        }
        self.nohz_next_ns = self.now + self.tick_ns;
        let mut next = self.now + 60_000_000_000;
        for cpu in 0..self.cpus.len() {
            let c = &self.cpus[cpu];
            if !c.idle || !self.host.is_idle(cpu) || self.now - c.idle_since_ns <= self.tick_ns {
                continue;
            }
            if self.now >= c.next_balance_ns {
                self.balance_due(cpu, true);
            }
            next = next.min(self.cpus[cpu].next_balance_ns);
        }
        self.nohz_next_ns = self.nohz_next_ns.max(next.min(self.now + 60_000_000));
    }

    /// Whether some busy CPU would kick: it has two tasks, or another CPU of its cache is busy.
    fn nohz_kick(&mut self) -> bool {
        let topology = self.host.topology();
        self.scratch.busy.clear();
        self.scratch.busy.resize(topology.nr_llcs(), false);
        for (cpu, c) in self.cpus.iter().enumerate() {
            if c.current.is_none() {
                continue;
            }
            if c.fair.nr >= 2 {
                return true;
            }
            if let Some(llc) = topology.llc(cpu) {
                if std::mem::replace(&mut self.scratch.busy[llc], true) {
                    return true;
                }
            }
        }
        false
    }
}

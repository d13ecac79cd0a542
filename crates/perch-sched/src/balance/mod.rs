// SPDX-License-Identifier: GPL-2.0-or-later
//! Load balancing: when a pass over a domain is due, and the consequences of its result
//! (docs/mechanisms/stock.md#balance).
//!
//! The model leaves out the mark of an imbalance on groups with tasks pinned to one CPU, asymmetric
//! packing and NUMA balancing's preferred nodes.

mod capacity;
mod check;
mod cpu_load;
mod domain;
mod fit;
mod imbalance;
mod judge;
mod llc;
mod lot;
mod misfit;
mod moves;
mod newidle;
mod periodic;
mod pull;
mod rt;
mod state;
mod stats;
mod sums;
mod weights;
mod words;

use perch_policy::{Change, CpuMask, Era, Level, Topology};

use crate::core::Sched;
use crate::era::EraRules;

use domain::DomainState;

pub(crate) use imbalance::{Idle, LbEnv};
pub(crate) use newidle::Search;
pub(crate) use pull::Pass;
pub(crate) use state::BalanceState;

/// Returns the longest time between two periodic passes that can move a task which may use the CPUs of
/// `allowed`, of a CPU that is busy all the time, in nanoseconds, while the machine is out of balance: the
/// interval of the lowest domain that has all these CPUs. A run that is shorter need not have seen what
/// the balancer does.
pub fn longest_busy_interval_ns(era: Era, topology: &Topology, allowed: &CpuMask) -> u64 {
    let rules = EraRules::new(era, topology.nr_cpus());
    let mut longest = 0;
    // The chain of any other of these CPUs comes to the same domain.
    for domain in allowed.iter().take(1).flat_map(|cpu| topology.domains(cpu)) {
        let is_numa = domain.level() == Level::Numa;
        let least = least_interval_ns(&rules, domain.span().weight(), is_numa);
        longest = longest.max(least * busy_factor(&rules, is_numa));
        if allowed.iter().all(|cpu| domain.span().contains(cpu)) {
            break;
        }
    }
    longest
}

/// Returns the shortest time between two passes over a domain of `weight` CPUs, in nanoseconds: a
/// millisecond for each of them, or the fixed interval of 3.4.
fn least_interval_ns(rules: &EraRules, weight: u32, is_numa: bool) -> u64 {
    match (rules.has(Change::GrowingIntervals), is_numa) {
        (true, _) => u64::from(weight) * 1_000_000,
        (false, true) => 8_000_000,
        (false, false) => 1_000_000,
    }
}

/// Returns the factor by which a busy CPU's intervals are longer.
fn busy_factor(rules: &EraRules, is_numa: bool) -> u64 {
    let halved = is_numa && !rules.has(Change::GrowingIntervals);
    if halved { rules.busy_factor / 2 } else { rules.busy_factor }
}

impl Sched<'_> {
    /// Updates the averages of all entities in a CPU's queues.
    fn touch(&mut self, cpu: usize) {
        if self.rq.wants_accounts() {
            self.rq.update_current(cpu);
        }
        self.rq.touch_active(cpu);
    }

    /// Returns the factor by which the time between two passes may exceed the shortest while a
    /// domain is balanced.
    fn most_times(&self, cpu: usize, i: usize) -> u64 {
        if !self.rules().has(Change::GrowingIntervals) && !self.balance.cpus[cpu].domains[i].is_core
        {
            4
        } else {
            2
        }
    }

    /// Returns the time that a pass over a domain takes, in nanoseconds: more with each busy CPU.
    fn pass_ns(&self, cpu: usize, i: usize) -> u64 {
        let state = &self.balance.cpus[cpu].domains[i];
        let span = self.host.topology().domain(state.domain).span();
        let idle = &self.host.idle_words()[span.first_word()..];
        let busy = span.words().iter().zip(idle).map(|(s, i)| (s & !i).count_ones());
        let busy = u64::from(busy.sum::<u32>());
        self.costs.balance_ns(state.weight) + state.lines_ns * busy / u64::from(state.weight)
    }

    /// Notes that a domain is balanced: the next pass may come later.
    fn wait_longer(&mut self, cpu: usize, i: usize) {
        let times = self.most_times(cpu, i);
        let state = &mut self.balance.cpus[cpu].domains[i];
        let most = times * state.least_ns;
        state.failed = 0;
        if state.interval_ns < most {
            state.interval_ns *= 2;
        }
    }

    /// Brings the next pass of a CPU that goes idle forward to the interval of an idle CPU.
    fn due_as_idle(&mut self, cpu: usize, i: usize) {
        let due = self.balance.cpus[cpu].domains[i].last_ns + self.interval_ns(cpu, i, true);
        let next = &mut self.balance.cpus[cpu].next_balance_ns;
        *next = (*next).min(due);
    }

    /// Returns the time between two passes, in nanoseconds: the span's weight in milliseconds, more
    /// while the domain is balanced, and much more for a busy CPU.
    fn interval_ns(&self, cpu: usize, i: usize, idle: bool) -> u64 {
        let state = &self.balance.cpus[cpu].domains[i];
        let mut interval = state.interval_ns;
        if !idle {
            let rules = self.rules();
            let less = u64::from(rules.has(Change::BusyFactor16)) * self.rq.tick_ns();
            let factor = busy_factor(rules, state.is_numa);
            interval = (interval * factor).saturating_sub(less);
        }
        interval.clamp(self.rq.tick_ns(), 100_000_000 * self.nr_cpus() as u64)
    }

    /// Notes the result of a pass over a domain. Returns the number of tasks that came.
    pub(crate) fn note_pass(&mut self, env: &LbEnv, pass: Pass) -> u32 {
        let &LbEnv { cpu, level: i, idle, .. } = env;
        let misfit_fails = !self.rules().has(Change::MisfitNoFailure);
        let state: &mut DomainState = &mut self.balance.cpus[cpu].domains[i];
        let least = state.least_ns;
        match pass {
            Pass::Balanced if idle == Idle::Newly => {
                state.failed = 0;
                0
            }
            Pass::Balanced => {
                self.wait_longer(cpu, i);
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
            Pass::Kept => {
                state.interval_ns = least;
                0
            }
            Pass::Pinned => {
                if idle != Idle::Newly && misfit_fails {
                    let failed = state.failed + 1;
                    self.wait_longer(cpu, i);
                    self.balance.cpus[cpu].domains[i].failed = failed;
                }
                0
            }
        }
    }

    /// Returns whether `cpu` balances for its group: the first idle CPU does, else the first. A CPU
    /// of an idle core comes before an idle thread of a busy one.
    fn should_balance(&self, cpu: usize, i: usize) -> bool {
        let topology = self.host.topology();
        let state = &self.balance.cpus[cpu].domains[i];
        let local = topology.domain(state.domain).group(state.local_group);
        let mut thread = None;
        for c in local.iter().filter(|&c| self.host.is_idle(c)) {
            let cores_first = topology.has_smt() && self.rules().has(Change::IdleCoreBalances);
            if !cores_first || topology.core_span(c).iter().all(|s| self.host.is_idle(s)) {
                return c == cpu;
            }
            thread.get_or_insert(c);
        }
        thread.or(local.iter().next()) == Some(cpu)
    }

    /// Lets the maximum cost of a newidle pass decay by about 1 % a second.
    fn decay_newidle_cost(&mut self, cpu: usize, i: usize) {
        let d = &mut self.balance.cpus[cpu].domains[i];
        if self.rq.now() > d.newidle_decay_ns + 1_000_000_000 {
            d.newidle_decay_ns = self.rq.now();
            d.newidle_cost_ns = d.newidle_cost_ns * 253 / 256;
        }
    }

    /// Lets the averages of idle CPUs decay, whose queues nothing else updates.
    fn decay_sleepers(&mut self) {
        for cpu in 0..self.nr_cpus() {
            if self.rq.idleness(cpu).is_idle()
                && self.host.cpu(cpu).load + self.host.cpu(cpu).util > 0
            {
                self.touch(cpu);
                self.publish(cpu);
            }
        }
    }

    /// Returns whether some busy CPU would kick an idle one: because it has two tasks, because
    /// another CPU of its LLC is busy, or, where CPUs differ, because its task does not fit.
    fn nohz_kick(&mut self) -> bool {
        let topology = self.host.topology();
        self.balance.scratch.busy.clear();
        self.balance.scratch.busy.resize(topology.nr_llcs(), false);
        for cpu in 0..self.nr_cpus() {
            if self.rq.current(cpu).is_none() {
                continue;
            }
            if self.rq.nr(cpu) >= 2 || self.kicks_for_misfit(cpu) {
                return true;
            }
            if self.rq.is_unequal() && topology.asym_span(cpu).is_some() {
                continue;
            }
            if let Some(llc) = topology.llc(cpu) {
                if std::mem::replace(&mut self.balance.scratch.busy[llc], true) {
                    return true;
                }
            }
        }
        false
    }
}

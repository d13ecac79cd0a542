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
mod pull;
mod rt;
mod state;
mod stats;
mod sums;
mod weights;
mod words;

use perch_policy::{Change, CpuMask, Era, Level, Topology};

use crate::core::Sched;
use crate::era::{EraRules, MIGRATION_COST_NS};

use domain::DomainState;
use imbalance::Idle;
use pull::Pass;

pub(crate) use moves::Vacated;
pub(crate) use newidle::Search;
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
    /// Returns whether a periodic pass of the busy `cpu` is due.
    #[inline]
    pub(crate) fn is_balance_due(&self, cpu: usize) -> bool {
        self.rq.now() >= self.balance.cpus[cpu].next_balance_ns
    }

    /// Does the periodic passes of `cpu` over those of its domains that are due. Returns the time
    /// that they take, in nanoseconds.
    pub(crate) fn balance_due(
        &mut self,
        vacated: &mut dyn Vacated,
        cpu: usize,
        mut idle: bool,
    ) -> u64 {
        self.touch(cpu);
        self.publish(cpu);
        let mut next = self.rq.now() + 60_000_000_000;
        let (mut cost, mut spent) = (0, 0);
        for i in 0..self.balance.cpus[cpu].domains.len() {
            self.decay_newidle_cost(cpu, i);
            cost += self.balance.cpus[cpu].domains[i].newidle_cost_ns;
            let mut interval = self.interval_ns(cpu, i, idle);
            let mut designated = true;
            if self.rq.now() >= self.balance.cpus[cpu].domains[i].last_ns + interval {
                designated = self.should_balance(cpu, i);
                if designated {
                    let kind = if idle { Idle::Due } else { Idle::Busy };
                    spent += self.pass_ns(cpu, i);
                    if self.balance_domain(vacated, cpu, i, kind) > 0 {
                        idle = self.rq.current(cpu).is_none() && self.rq.nr(cpu) == 0;
                    }
                } else {
                    self.wait_longer(cpu, i);
                }
                self.balance.cpus[cpu].domains[i].last_ns = self.rq.now();
                interval = self.interval_ns(cpu, i, idle);
            }
            next = next.min(self.balance.cpus[cpu].domains[i].last_ns + interval);
            // A CPU that does not balance for its group does not for a wider one either.
            if !designated {
                break;
            }
        }
        self.balance.cpus[cpu].next_balance_ns = next;
        let most = cost.max(MIGRATION_COST_NS);
        self.rq.idleness_mut(cpu).set_max_cost(most);
        spent
    }

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

    /// Does one pass over one domain. Returns the number of tasks that came.
    fn balance_domain(
        &mut self,
        vacated: &mut dyn Vacated,
        cpu: usize,
        i: usize,
        idle: Idle,
    ) -> u32 {
        let number = self.balance.cpus[cpu].domains[i].domain;
        let pass = self.try_domain(vacated, cpu, i, number, idle);
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

    /// Balances for the idle CPUs, which have no tick: a busy CPU notices that balancing is due,
    /// and the first idle CPU balances for all, for itself last. It does so for as long as it stays
    /// idle: when it is woken, it leaves the rest to the next tick.
    pub(crate) fn balance_sleepers(&mut self, vacated: &mut dyn Vacated) {
        if self.rq.now() >= self.balance.decay_next_ns {
            self.balance.decay_next_ns = self.rq.now() + 32_000_000;
            self.decay_sleepers();
        }
        if self.rq.now() < self.balance.nohz_next_ns || !self.nohz_kick() {
            return;
        }
        self.balance.nohz_next_ns = self.rq.now() + self.rq.tick_ns();
        let n = self.nr_cpus();
        let Some(first) = (0..n).find(|&cpu| self.host.is_idle(cpu)) else {
            return;
        };
        let patience = self.rq.idleness(first).avg_idle_ns();
        let (mut next, mut spent) = (self.rq.now() + 60_000_000_000, 0);
        for cpu in (first + 1..n).chain(std::iter::once(first)) {
            if !self.host.is_idle(cpu) {
                continue;
            }
            if self.rq.now() >= self.balance.cpus[cpu].next_balance_ns {
                if spent > patience {
                    return;
                }
                let took = self.balance_due(vacated, cpu, true);
                spent += took;
                self.add_chore(first, took);
            }
            next = next.min(self.balance.cpus[cpu].next_balance_ns);
        }
        self.balance.nohz_next_ns = self.balance.nohz_next_ns.max(next);
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

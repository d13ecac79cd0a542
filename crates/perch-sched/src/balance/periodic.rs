// SPDX-License-Identifier: GPL-2.0-or-later
//! Periodic passes: which are due, in which order, and when the next will be. The core does them, one
//! at a time, as a pass may switch other CPUs.

use super::imbalance::Idle;
use crate::core::Sched;
use crate::era::MIGRATION_COST_NS;

/// The periodic passes of a CPU, one domain after the other.
#[derive(Debug)]
pub(crate) struct Periodic {
    cpu: usize,
    /// The CPU has nothing to run.
    idle: bool,
    /// The domain to look at next, as an index into the CPU's domains.
    domain: usize,
    /// When the first pass will be due again, as far as the domains were looked at, nanoseconds.
    next_ns: u64,
    /// What newidle passes over the domains that were looked at cost, nanoseconds.
    newidle_ns: u64,
    /// The time that the passes take, nanoseconds.
    spent_ns: u64,
}

impl Periodic {
    /// Returns the state in which the CPU balances.
    pub fn idle(&self) -> Idle {
        if self.idle { Idle::Due } else { Idle::Busy }
    }
}

/// The idle CPUs, which have no tick: a busy CPU notices that balancing is due, and the first idle CPU
/// balances for all, for itself last. It does so for as long as it stays idle: when it is woken, it
/// leaves the rest to the next tick.
#[derive(Debug)]
pub(crate) struct Sleepers {
    first: usize,
    /// How many CPUs after the first were looked at.
    seen: usize,
    /// When the first pass will be due again, as far as the CPUs were looked at, nanoseconds.
    next_ns: u64,
    /// The time that the passes take, nanoseconds.
    spent_ns: u64,
    /// How long the first CPU is expected to stay idle, nanoseconds.
    patience_ns: u64,
}

/// A time by which a pass is due at the latest, from now on, nanoseconds.
const AT_MOST_NS: u64 = 60_000_000_000;

impl Sched<'_> {
    /// Returns whether a periodic pass of the busy `cpu` is due.
    #[inline]
    pub(crate) fn is_balance_due(&self, cpu: usize) -> bool {
        self.rq.now() >= self.balance.cpus[cpu].next_balance_ns
    }

    /// Begins the periodic passes of `cpu`.
    pub(crate) fn begin_periodic(&mut self, cpu: usize, idle: bool) -> Periodic {
        self.touch(cpu);
        self.publish(cpu);
        let next_ns = self.rq.now() + AT_MOST_NS;
        Periodic { cpu, idle, domain: 0, next_ns, newidle_ns: 0, spent_ns: 0 }
    }

    /// Returns the domain of the next pass that is due, as an index into the CPU's domains.
    pub(crate) fn next_periodic(&mut self, passes: &mut Periodic) -> Option<usize> {
        let cpu = passes.cpu;
        while passes.domain < self.balance.cpus[cpu].domains.len() {
            let i = passes.domain;
            self.decay_newidle_cost(cpu, i);
            let state = &self.balance.cpus[cpu].domains[i];
            passes.newidle_ns += state.newidle_cost_ns;
            let due_ns = state.last_ns + self.interval_ns(cpu, i, passes.idle);
            if self.rq.now() < due_ns {
                passes.next_ns = passes.next_ns.min(due_ns);
                passes.domain += 1;
                continue;
            }
            if self.should_balance(cpu, i) {
                passes.spent_ns += self.pass_ns(cpu, i);
                return Some(i);
            }
            self.wait_longer(cpu, i);
            self.end_domain(passes);
            // A CPU that does not balance for its group does not for a wider one either.
            break;
        }
        None
    }

    /// Notes that the pass that was due is done, and how many tasks came.
    pub(crate) fn end_periodic_pass(&mut self, passes: &mut Periodic, moved: u32) {
        if moved > 0 {
            passes.idle = self.rq.current(passes.cpu).is_none() && self.rq.nr(passes.cpu) == 0;
        }
        self.end_domain(passes);
        passes.domain += 1;
    }

    fn end_domain(&mut self, passes: &mut Periodic) {
        let (cpu, i) = (passes.cpu, passes.domain);
        self.balance.cpus[cpu].domains[i].last_ns = self.rq.now();
        let due_ns = self.rq.now() + self.interval_ns(cpu, i, passes.idle);
        passes.next_ns = passes.next_ns.min(due_ns);
    }

    /// Ends the periodic passes of a CPU. Returns the time that they take, in nanoseconds.
    pub(crate) fn end_periodic(&mut self, passes: &Periodic) -> u64 {
        self.balance.cpus[passes.cpu].next_balance_ns = passes.next_ns;
        let most = passes.newidle_ns.max(MIGRATION_COST_NS);
        self.rq.idleness_mut(passes.cpu).set_max_cost(most);
        passes.spent_ns
    }

    /// Returns the idle CPUs, if some busy CPU has noticed that they are to balance.
    pub(crate) fn begin_sleepers(&mut self) -> Option<Sleepers> {
        let now = self.rq.now();
        if now >= self.balance.decay_next_ns {
            self.balance.decay_next_ns = now + 32_000_000;
            self.decay_sleepers();
        }
        if now < self.balance.nohz_next_ns || !self.nohz_kick() {
            return None;
        }
        self.balance.nohz_next_ns = now + self.rq.tick_ns();
        let first = (0..self.nr_cpus()).find(|&cpu| self.host.is_idle(cpu))?;
        let patience_ns = self.rq.idleness(first).avg_idle_ns();
        Some(Sleepers { first, seen: 0, next_ns: now + AT_MOST_NS, spent_ns: 0, patience_ns })
    }

    /// Returns the next idle CPU whose passes are due.
    pub(crate) fn next_sleeper(&mut self, sleepers: &mut Sleepers) -> Option<usize> {
        let others = self.nr_cpus() - sleepers.first - 1;
        while sleepers.seen <= others {
            let after = if sleepers.seen < others { sleepers.seen + 1 } else { 0 };
            let cpu = sleepers.first + after;
            if self.host.is_idle(cpu) {
                if self.is_balance_due(cpu) {
                    return (sleepers.spent_ns <= sleepers.patience_ns).then_some(cpu);
                }
                let next_ns = self.balance.cpus[cpu].next_balance_ns;
                sleepers.next_ns = sleepers.next_ns.min(next_ns);
            }
            sleepers.seen += 1;
        }
        self.balance.nohz_next_ns = self.balance.nohz_next_ns.max(sleepers.next_ns);
        None
    }

    /// Notes that the passes of the idle `cpu` are done, which took `ns` nanoseconds of the first idle
    /// CPU.
    pub(crate) fn end_sleeper(&mut self, sleepers: &mut Sleepers, cpu: usize, ns: u64) {
        sleepers.spent_ns += ns;
        sleepers.seen += 1;
        sleepers.next_ns = sleepers.next_ns.min(self.balance.cpus[cpu].next_balance_ns);
        self.add_chore(sleepers.first, ns);
    }
}

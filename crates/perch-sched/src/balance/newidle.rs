// SPDX-License-Identifier: GPL-2.0-or-later
//! The search of a CPU that runs out of tasks: a newidle pass over one domain after the other
//! (`sched_balance_newidle`). Each pass takes its time, with interrupts off, and moves a task at its
//! end: what a queue had to spare at the beginning may have run by then.

use perch_policy::Change;

use crate::core::Sched;
use crate::hardware::{Access, Field, Symbol};

/// What the dearest pass of a CPU over a domain takes, beside the usual one
/// (docs/calibration.md#what-a-move-costs). The kernel remembers the dearest (`max_newidle_lb_cost`), and
/// forgets 1 % of it a second.
const DEAREST: (u64, u64) = (7, 3);

/// A search under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    /// The domain of the pass under way, as an index into the CPU's domains.
    domain: usize,
    /// For how many passes the success of this one counts.
    weight: u32,
    /// The time that this pass takes, nanoseconds.
    cost_ns: u64,
    /// The time that the passes before it took, nanoseconds.
    spent_ns: u64,
}

impl Search {
    /// Returns the domain of the pass under way, as an index into the CPU's domains.
    pub fn domain(&self) -> usize {
        self.domain
    }

    /// Returns the time that the search takes to the end of the pass under way, nanoseconds.
    pub fn took_ns(&self) -> u64 {
        self.spent_ns + self.cost_ns
    }

    /// Returns the time that the pass under way takes, nanoseconds.
    pub fn pass_ns(&self) -> u64 {
        self.cost_ns
    }
}

impl Sched<'_> {
    /// Returns the search of `cpu`, which ran out of tasks, if its average idle time is long enough
    /// for one to pay.
    pub(crate) fn newidle_search(&mut self, cpu: usize) -> Option<Search> {
        let first = self.balance.cpus[cpu].domains.first()?.newidle_cost_ns;
        self.due_as_idle(cpu, 0);
        let newidle = Symbol::SchedBalanceNewidle;
        self.line(cpu, newidle, Field::Overloaded, Access::Load);
        let least = first.max(self.rules().newidle_least_ns);
        if !self.is_overloaded() || self.rq.idleness(cpu).avg_idle_ns() < least {
            return None;
        }
        // The last task has just left: the passes must not count it.
        self.publish(cpu);
        self.next_pass(cpu, 0, 0)
    }

    /// Returns the search of `cpu` with the next pass over its domains, from the one at `from` on, after
    /// passes of `spent_ns` in all; `None` if there is no such pass.
    fn next_pass(&mut self, cpu: usize, from: usize, spent_ns: u64) -> Option<Search> {
        let avg_idle = self.rq.idleness(cpu).avg_idle_ns();
        for domain in from..self.balance.cpus[cpu].domains.len() {
            if domain > 0 {
                self.due_as_idle(cpu, domain);
            }
            if avg_idle < spent_ns + self.balance.cpus[cpu].domains[domain].newidle_cost_ns {
                return None;
            }
            if let Some(weight) = self.newidle_by_chance(cpu, domain) {
                let cost_ns = self.pass_ns(cpu, domain);
                return Some(Search { domain, weight, cost_ns, spent_ns });
            }
        }
        None
    }

    /// Ends the pass under way of `search`, which has pulled a task or not. Returns the search with its next pass, unless a task came or
    /// there is none.
    pub(crate) fn end_pass(&mut self, cpu: usize, search: Search, pulled: bool) -> Option<Search> {
        let Search { domain, weight, cost_ns, .. } = search;
        if pulled {
            self.charge_move(cpu);
        }
        let now = self.rq.now();
        let d = &mut self.balance.cpus[cpu].domains[domain];
        d.lot.note(now, weight * u32::from(pulled));
        let (dearest, usual) = DEAREST;
        d.newidle_cost_ns = d.newidle_cost_ns.max(cost_ns * dearest / usual);
        if self.rq.nr(cpu) > 0 || !self.inbox(cpu).is_empty() {
            return None;
        }
        self.next_pass(cpu, domain + 1, search.took_ns())
    }

    /// Charges the task that `cpu` has pulled for its way from queue to queue: off one as at a wake-up
    /// onto another.
    fn charge_move(&mut self, cpu: usize) {
        let mut first = None;
        self.rq.each_waiting(cpu, &mut |task| {
            first = Some(task);
            false
        });
        if let Some(first) = first {
            self.charge_kernel(cpu, first, 2 * self.costs.wake_ns(0));
        }
    }

    /// Returns for how many passes the success of a newidle pass over a domain counts, or `None` if
    /// the pass is not tried: 7.2 draws a lot.
    fn newidle_by_chance(&mut self, cpu: usize, i: usize) -> Option<u32> {
        if !self.rules().has(Change::NewidleBySuccess) {
            return Some(1);
        }
        let lot = &mut self.balance.cpus[cpu].domains[i].lot;
        let drawn = lot.draw(self.balance.random.below(1024));
        if drawn.is_none() {
            lot.note(self.rq.now(), 0);
        }
        drawn
    }
}

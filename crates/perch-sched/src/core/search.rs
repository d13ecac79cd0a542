// SPDX-License-Identifier: GPL-2.0-or-later
//! CPUs that look for a task elsewhere before they idle. They run none, do not count as idle, and
//! hear no interrupt: what is sent to them comes at the end of the pass under way.

use super::{Programs, Sched, kind};
use crate::balance::{Idle, Search};

impl Sched<'_> {
    /// Begins the newidle search of `cpu`, which has run out of tasks. Returns whether it has begun.
    pub(super) fn begin_newidle(&mut self, cpu: usize) -> bool {
        // A CPU that was idle, and whose task somebody has taken before it ran, idles on.
        let was_idle = self.rq.idleness(cpu).is_idle();
        if !self.rq.balances() || was_idle || self.cpus[cpu].inbox.is_told() {
            return false;
        }
        let Some(search) = self.newidle_search(cpu) else {
            return false;
        };
        self.host.set_idle(cpu, false);
        let now = self.rq.now();
        self.rq.idleness_mut(cpu).begin_search(now);
        self.search_on(cpu, search);
        true
    }

    /// Lets the pass under way of `search` take its time.
    fn search_on(&mut self, cpu: usize, search: Search) {
        self.cpus[cpu].newidle = Some(search);
        let end_ns = self.rq.now() + search.pass_ns();
        self.leaves_at(cpu, end_ns);
        self.cpus[cpu].inbox.tell(true);
        self.at(end_ns, kind::IPI, cpu as u32, 0);
    }

    /// Ends the pass under way of `cpu`, and goes on with the next one, with a task that the pass has
    /// pulled or somebody has enqueued meanwhile, or with the idle task. Who is on the way to the CPU
    /// ends the search, and comes after that. Returns whether the next pass has begun.
    #[inline(never)]
    pub(super) fn go_on_searching(
        &mut self,
        programs: &mut dyn Programs,
        cpu: usize,
        search: Search,
    ) -> bool {
        let woken = self.rq.nr(cpu) > 0;
        let pulled = self.balance_domain(programs, cpu, search.domain(), Idle::Newly);
        let next = self.end_pass(cpu, search, pulled > 0);
        if let Some(next) = next {
            self.search_on(cpu, next);
            return true;
        }
        let (now, took_ns) = (self.rq.now(), search.took_ns());
        let idleness = self.rq.idleness_mut(cpu);
        idleness.raise_max_cost(took_ns);
        if woken {
            // A wake-up ends an idle period (`idle_stamp`), and a pull begins none.
            idleness.begin(now - took_ns);
            idleness.end(now);
        }
        match self.pick(cpu) {
            Some(task) => {
                self.rq.idleness_mut(cpu).end_search(now);
                self.switch_to(programs, cpu, task);
            }
            None => self.go_idle_since(cpu, now - took_ns),
        }
        false
    }

    /// Returns whether `cpu` looks for a task that waits elsewhere.
    pub(crate) fn searches_for_task(&self, cpu: usize) -> bool {
        self.cpus[cpu].searches || self.cpus[cpu].newidle.is_some()
    }
}

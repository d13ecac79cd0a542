// SPDX-License-Identifier: GPL-2.0-or-later
//! The figures of a CPU's queue, as the policy and the balancer's sums see them.

use super::Sched;
use crate::balance::Sums;

impl Sched<'_> {
    /// Shows the policy the queue of `cpu` as it is now, and brings all sums over queues up to
    /// date.
    pub(crate) fn publish(&mut self, cpu: usize) {
        self.tell_groups();
        let current = self.rq.fair_current(cpu);
        let curr_load = current.map_or(0, |task| self.rq.task_load(task));
        let nr = self.rq.nr(cpu);
        let capacity = self.host.topology().capacity(cpu);
        let shown = self.rq.shown(cpu, capacity);
        let state = self.host.cpu_mut(cpu);
        let before = Sums::of(state);
        state.nr_running = nr;
        state.nr_delayed = shown.nr_delayed;
        state.load = shown.load;
        state.runnable = shown.runnable;
        state.util = shown.util;
        state.curr_load = curr_load;
        let after = Sums::of(state);
        self.balance.follow(cpu, &before, &after, nr);
        if self.caches.reserves() {
            self.sum_util(cpu);
        }
    }
}

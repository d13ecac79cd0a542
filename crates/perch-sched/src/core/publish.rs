// SPDX-License-Identifier: GPL-2.0-or-later
//! The figures of a CPU's queue, as the policy and the balancer's sums see them.

use super::Sched;
use crate::balance::Sums;

impl Sched<'_> {
    /// Shows the policy the queue of `cpu` as it is now, and brings all sums over queues up to
    /// date.
    pub(crate) fn publish(&mut self, cpu: usize) {
        self.tell_groups();
        let shown = self.rq.shown(cpu);
        let state = self.host.cpu_mut(cpu);
        let before = Sums::of(state);
        state.nr_running = shown.nr_running;
        state.nr_delayed = shown.fair.nr_delayed;
        state.load = shown.fair.load;
        state.runnable = shown.fair.runnable;
        state.util = shown.fair.util;
        state.curr_load = shown.curr_load;
        let after = Sums::of(state);
        self.balance.follow(cpu, &before, &after, shown.nr_running);
        if self.caches.reserves() {
            self.sum_util(cpu);
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The figures of a CPU's queue, as the policy and the balancer see them.

use super::Sched;

impl Sched<'_> {
    /// Shows the policy the queue of `cpu` as it is now, and tells those who sum over queues that
    /// it has changed.
    pub(crate) fn publish(&mut self, cpu: usize) {
        self.tell_groups();
        let shown = self.rq.shown(cpu);
        let state = self.host.cpu_mut(cpu);
        state.nr_running = shown.nr_running;
        state.nr_delayed = shown.fair.nr_delayed;
        state.load = shown.fair.load;
        state.runnable = shown.fair.runnable;
        state.util = shown.fair.util;
        state.curr_load = shown.curr_load;
        self.balance.follow(cpu, shown.nr_running);
        if self.caches.reserves() {
            self.sum_util(cpu);
        }
    }
}

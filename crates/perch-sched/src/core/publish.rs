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
        state.nr_delayed = shown.fair.nr_delayed;
        state.curr_load = shown.curr_load;
        let (fair, nr_running) = (&shown.fair, shown.nr_running);
        let before = (state.nr_running, state.load, state.runnable, state.util);
        if before != (nr_running, fair.load, fair.runnable, fair.util) {
            state.nr_running = nr_running;
            state.load = fair.load;
            state.runnable = fair.runnable;
            state.util = fair.util;
            self.balance.follow(cpu, nr_running);
        }
        if self.rq.has_rt() {
            let any = shown.fair.nr > shown.fair.nr_delayed;
            self.balance.note_fair(cpu, any);
        }
        if self.caches.reserves() {
            self.sum_util(cpu);
        }
    }
}

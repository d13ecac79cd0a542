// SPDX-License-Identifier: GPL-2.0-or-later
//! The effects on other CPUs when a CPU becomes idle or busy: idle states, idle cores, and the
//! speed of SMT siblings.

use super::Sched;

impl Sched<'_> {
    /// Makes `cpu`, which has no task to run, idle.
    pub(super) fn go_idle(&mut self, cpu: usize) {
        if !self.rq.cpus[cpu].idleness.is_idle() {
            let full = self.rq.is_full(cpu);
            let c = &mut self.rq.cpus[cpu];
            c.pelt.stop(self.rq.now, full);
            c.idleness.begin(self.rq.now);
        }
        let expected = self.rq.cpus[cpu].idleness.avg_idle_ns();
        self.publish(cpu);
        let exit_ns = self.costs.idle_exit_ns(expected);
        let state = self.host.cpu_mut(cpu);
        state.idle_since_ns = self.rq.now;
        state.idle_exit_ns = exit_ns;
        let idle = self.cpus[cpu].inbox.is_empty() && self.rq.nr(cpu) == 0;
        self.host.set_idle(cpu, idle);
        if idle {
            self.note_idle_core(cpu);
        }
        self.share_core(cpu);
    }

    /// Makes `cpu`, which was idle and has a task to run, busy.
    pub(super) fn leave_idle(&mut self, cpu: usize) {
        self.rest_lines(cpu);
        let c = &mut self.rq.cpus[cpu];
        c.idleness.end(self.rq.now);
        c.pelt.start(self.rq.now);
    }

    /// Returns the busy time of each CPU since this was last called, in nanoseconds.
    pub fn take_busy(&mut self) -> Vec<u64> {
        let now = self.rq.now;
        let busy = self.rq.cpus.iter_mut();
        let busy = busy.map(|cpu| cpu.idleness.take_busy(now, cpu.current.is_some()));
        busy.collect()
    }

    /// Returns the busy time since that was last taken, summed over the CPUs, in nanoseconds.
    pub fn busy_ns(&self) -> u64 {
        let busy = self.rq.cpus.iter();
        let busy = busy.map(|cpu| cpu.idleness.busy_ns(self.rq.now, cpu.current.is_some()));
        busy.sum()
    }

    /// Sets the flag that the LLC has an idle core, if `cpu` is the last CPU of its core to become
    /// idle.
    fn note_idle_core(&mut self, cpu: usize) {
        let topology = self.host.topology();
        if !topology.has_smt() {
            return;
        }
        let Some(llc) = topology.llc(cpu) else {
            return;
        };
        let all = topology.core_span(cpu).iter().all(|c| self.host.is_idle(c));
        if all {
            self.host.set_idle_cores(llc, true);
        }
    }

    /// Sets the speed of the threads of a core after one of them has become idle or busy: each runs
    /// slower beside a busy sibling.
    pub(super) fn share_core(&mut self, cpu: usize) {
        if !self.host.topology().has_smt() {
            return;
        }
        let topology = self.host.topology().clone();
        let core = topology.core_span(cpu);
        let busy = core
            .iter()
            .filter(|&c| self.rq.cpus[c].current.is_some())
            .count() as u32;
        for sibling in core.iter() {
            let speed = self
                .costs
                .speed_1024(topology.capacity(sibling), busy.saturating_sub(1));
            if self.cpus[sibling].speed_1024 == speed {
                continue;
            }
            if sibling != cpu && self.rq.cpus[sibling].current.is_some() {
                self.stop_segment(sibling);
                self.cpus[sibling].speed_1024 = speed;
                self.begin_segment(sibling);
            } else {
                self.cpus[sibling].speed_1024 = speed;
            }
        }
    }
}

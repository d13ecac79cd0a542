// SPDX-License-Identifier: GPL-2.0-or-later
//! What a CPU does to others when it stops and when it starts: idle states, idle cores, SMT.

use super::Sched;

impl Sched<'_> {
    /// A CPU has nothing to run.
    pub(super) fn go_idle(&mut self, cpu: usize) {
        if !self.cpus[cpu].idle {
            let full = self.is_full(cpu);
            let c = &mut self.cpus[cpu];
            c.idle = true;
            c.idle_since_ns = self.now;
            c.pelt.stop(self.now, full);
            c.busy_ns += self.now - c.busy_since_ns;
        }
        let expected = self.cpus[cpu].avg_idle_ns;
        self.publish(cpu);
        let exit_ns = self.costs.idle_exit_ns(expected);
        let state = self.host.cpu_mut(cpu);
        state.idle_since_ns = self.now;
        state.idle_exit_ns = exit_ns;
        let idle = self.cpus[cpu].wake_list.is_empty() && self.nr(cpu) == 0;
        self.host.set_idle(cpu, idle);
        if idle {
            self.note_idle_core(cpu);
        }
        self.share_core(cpu);
    }

    /// A CPU that was idle has a task to run.
    pub(super) fn leave_idle(&mut self, cpu: usize) {
        self.rest_lines(cpu);
        let c = &mut self.cpus[cpu];
        c.idle = false;
        let max = 2 * c.max_idle_cost_ns;
        let idle_ns = self.now - c.idle_since_ns;
        let avg = c.avg_idle_ns as i64;
        let avg = avg + (idle_ns as i64 - avg) / 8;
        c.avg_idle_ns = (avg as u64).min(max);
        c.busy_since_ns = self.now;
        c.pelt.start(self.now);
    }

    /// The busy time of each CPU since this was asked last, nanoseconds.
    pub fn take_busy(&mut self) -> Vec<u64> {
        let now = self.now;
        let busy = self.cpus.iter_mut().map(|cpu| {
            if cpu.current.is_some() {
                cpu.busy_ns += now - cpu.busy_since_ns.min(now);
                cpu.busy_since_ns = now;
            }
            std::mem::take(&mut cpu.busy_ns)
        });
        busy.collect()
    }

    /// The LLC's idle-core flag is set by the CPU that completes an idle core.
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

    /// A thread of a core started or stopped: its siblings run slower or faster from now on.
    pub(super) fn share_core(&mut self, cpu: usize) {
        if !self.host.topology().has_smt() {
            return;
        }
        let topology = self.host.topology().clone();
        let core = topology.core_span(cpu);
        let busy = core
            .iter()
            .filter(|&c| self.cpus[c].current.is_some())
            .count() as u32;
        for sibling in core.iter() {
            let speed = self
                .costs
                .speed_1024(topology.capacity(sibling), busy.saturating_sub(1));
            if self.cpus[sibling].speed_1024 == speed {
                continue;
            }
            if sibling != cpu && self.cpus[sibling].current.is_some() {
                self.stop_segment(sibling);
                self.cpus[sibling].speed_1024 = speed;
                self.begin_segment(sibling);
            } else {
                self.cpus[sibling].speed_1024 = speed;
            }
        }
    }
}

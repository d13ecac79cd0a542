// SPDX-License-Identifier: GPL-2.0-or-later
//! What a CPU does to others when it stops and when it starts: idle states, idle cores, SMT.

use super::Sched;

/// A CPU's idle and busy time.
#[derive(Debug)]
pub(crate) struct Idleness {
    /// It runs its idle task.
    idle: bool,
    /// When it became idle last.
    idle_since_ns: u64,
    /// Nanoseconds that it was not idle, as far as they are counted.
    busy_ns: u64,
    /// Since when its busy time is not yet counted.
    busy_since_ns: u64,
    /// Moving average of idle periods, nanoseconds.
    avg_idle_ns: u64,
    /// Half of the ceiling of that average (`max_idle_balance_cost`).
    max_cost_ns: u64,
}

impl Idleness {
    /// Of a CPU on which nothing has run yet.
    pub fn new() -> Idleness {
        Idleness {
            idle: true,
            idle_since_ns: 0,
            busy_ns: 0,
            busy_since_ns: 0,
            avg_idle_ns: 1_000_000,
            max_cost_ns: 500_000,
        }
    }

    /// The passes of the balancer cost a CPU so much in all: half of the longest average.
    pub fn set_max_cost(&mut self, ns: u64) {
        self.max_cost_ns = ns;
    }

    /// The passes cost at least so much.
    pub fn raise_max_cost(&mut self, ns: u64) {
        self.max_cost_ns = self.max_cost_ns.max(ns);
    }

    /// So much idle time was none: the CPU waited for contended lines.
    pub fn add_busy(&mut self, ns: u64) {
        self.busy_ns += ns;
    }
}

impl Sched<'_> {
    /// Whether a CPU runs its idle task.
    #[inline]
    pub(crate) fn is_asleep(&self, cpu: usize) -> bool {
        self.cpus[cpu].idleness.idle
    }

    /// How long a CPU usually is idle, nanoseconds.
    #[inline]
    pub(crate) fn avg_idle_ns(&self, cpu: usize) -> u64 {
        self.cpus[cpu].idleness.avg_idle_ns
    }

    /// A CPU has nothing to run.
    pub(super) fn go_idle(&mut self, cpu: usize) {
        if !self.is_asleep(cpu) {
            let full = self.is_full(cpu);
            let c = &mut self.cpus[cpu];
            c.idleness.idle = true;
            c.idleness.idle_since_ns = self.now;
            c.pelt.stop(self.now, full);
            c.idleness.busy_ns += self.now - c.idleness.busy_since_ns;
        }
        let expected = self.avg_idle_ns(cpu);
        self.publish(cpu);
        let exit_ns = self.costs.idle_exit_ns(expected);
        let state = self.host.cpu_mut(cpu);
        state.idle_since_ns = self.now;
        state.idle_exit_ns = exit_ns;
        let idle = !self.awaits_tasks(cpu) && self.nr(cpu) == 0;
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
        c.idleness.idle = false;
        let max = 2 * c.idleness.max_cost_ns;
        let idle_ns = self.now - c.idleness.idle_since_ns;
        let avg = c.idleness.avg_idle_ns as i64;
        let avg = avg + (idle_ns as i64 - avg) / 8;
        c.idleness.avg_idle_ns = (avg as u64).min(max);
        c.idleness.busy_since_ns = self.now;
        c.pelt.start(self.now);
    }

    /// The busy time of each CPU since this was asked last, nanoseconds.
    pub fn take_busy(&mut self) -> Vec<u64> {
        let now = self.now;
        let busy = self.cpus.iter_mut().map(|cpu| {
            if cpu.current.is_some() {
                cpu.idleness.busy_ns += now - cpu.idleness.busy_since_ns.min(now);
                cpu.idleness.busy_since_ns = now;
            }
            std::mem::take(&mut cpu.idleness.busy_ns)
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

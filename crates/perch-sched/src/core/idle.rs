// SPDX-License-Identifier: GPL-2.0-or-later
//! The effects on other CPUs when a CPU becomes idle or busy: idle states, idle cores, and the
//! speed of SMT siblings.

use super::{Sched, kind};
use crate::observe::Observed;

impl Sched<'_> {
    /// Makes `cpu`, which has no task to run, idle.
    #[inline]
    pub(super) fn go_idle(&mut self, cpu: usize) {
        self.go_idle_since(cpu, self.rq.now());
    }

    /// Makes `cpu` idle, which has had no task to run since `since_ns`.
    pub(super) fn go_idle_since(&mut self, cpu: usize, since_ns: u64) {
        if self.rq.idleness(cpu).is_idle() {
            self.rq.idleness_mut(cpu).idle_on(since_ns);
        } else {
            self.rq.begin_idle(cpu, since_ns);
        }
        let expected = self.rq.idleness(cpu).avg_idle_ns();
        self.publish(cpu);
        let exit_ns = self.costs.idle_exit_ns(expected);
        let state = self.host.cpu_mut(cpu);
        state.idle_since_ns = self.rq.now();
        state.idle_exit_ns = exit_ns;
        self.host.set_idle(cpu, false);
        if self.is_free(cpu) && !self.begin_leaving(cpu) {
            self.count_as_idle(cpu);
        }
        self.share_core(cpu);
        self.rq.tell_idle(cpu, Some(exit_ns));
        self.apply();
    }

    /// Returns whether `cpu` has no task, and none is on its way there.
    pub(super) fn is_free(&self, cpu: usize) -> bool {
        let empty = self.rq.current(cpu).is_none() && self.rq.nr(cpu) == 0;
        !self.searches_for_task(cpu) && empty && self.cpus[cpu].inbox.is_empty()
    }

    /// Lets `cpu` count as idle if it is free.
    pub(super) fn count_as_idle(&mut self, cpu: usize) {
        if self.is_free(cpu) {
            self.host.set_idle(cpu, true);
            self.note_idle_core(cpu);
        }
    }

    /// Lets `cpu` count as idle, from which somebody took a task, if it was idle and waited for that
    /// one alone.
    #[inline]
    pub(crate) fn count_as_idle_if_left(&mut self, cpu: usize) {
        if self.rq.idleness(cpu).is_idle() && self.leaves_for_ns(cpu) == 0 {
            self.count_as_idle(cpu);
        }
    }

    /// Begins the switch of `cpu`, which is idle and has a task, to that task: it leaves its idle
    /// loop, which is no task's time, and picks a task after that. Returns whether that has begun,
    /// and is not over.
    #[inline]
    pub(super) fn begin_leaving_idle(&mut self, cpu: usize) -> bool {
        let takes_ns = self.costs.switch_in_ns();
        let idleness = self.rq.idleness(cpu);
        if takes_ns == 0 || idleness.is_woken() || !idleness.is_idle() {
            return false;
        }
        let now = self.rq.now();
        self.rq.idleness_mut(cpu).wake(now);
        let c = &mut self.cpus[cpu];
        c.inbox.tell(true);
        let took_ns = c.wall_ns(takes_ns);
        self.happened(Observed::InKernel { cpu, ns: took_ns });
        self.at(now + took_ns, kind::IPI, cpu as u32, 0);
        true
    }

    /// Makes `cpu`, which was idle and has a task to run, busy.
    pub(super) fn leave_idle(&mut self, cpu: usize) {
        self.rest_lines(cpu);
        self.rq.end_idle(cpu);
        self.rq.tell_idle(cpu, None);
    }

    /// Returns the busy time of each CPU since this was last called, in nanoseconds.
    pub fn take_busy(&mut self) -> Vec<u64> {
        let cpus = 0..self.nr_cpus();
        cpus.map(|cpu| self.rq.take_busy(cpu)).collect()
    }

    /// Returns the busy time since that was last taken, summed over the CPUs, in nanoseconds.
    pub fn busy_ns(&self) -> u64 {
        (0..self.nr_cpus()).map(|cpu| self.rq.busy_ns(cpu)).sum()
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
        let busy = core.iter().filter(|&c| self.rq.current(c).is_some()).count() as u32;
        for sibling in core.iter() {
            let speed = self.costs.speed_1024(topology.capacity(sibling), busy.saturating_sub(1));
            if self.cpus[sibling].speed_1024 == speed {
                continue;
            }
            if sibling != cpu && self.rq.current(sibling).is_some() {
                self.stop_segment(sibling);
                self.cpus[sibling].speed_1024 = speed;
                self.begin_segment(sibling);
            } else {
                self.cpus[sibling].speed_1024 = speed;
            }
        }
    }
}

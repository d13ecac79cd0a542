// SPDX-License-Identifier: GPL-2.0-or-later
//! The running tasks and the idle CPUs, for all rooms.

use super::RunQueues;
use super::idleness::Idleness;
use crate::id::TaskId;

impl RunQueues {
    /// Returns whether the CPUs differ in capacity.
    #[inline]
    pub(crate) fn is_unequal(&self) -> bool {
        self.unequal
    }

    /// Returns the idle and busy times of `cpu`.
    #[inline]
    pub(crate) fn idleness(&self, cpu: usize) -> &Idleness {
        &self.cpus[cpu].idleness
    }

    /// See [`RunQueues::idleness`].
    #[inline]
    pub(crate) fn idleness_mut(&mut self, cpu: usize) -> &mut Idleness {
        &mut self.cpus[cpu].idleness
    }

    /// Notes that `cpu` becomes idle; the clock of its averages stops.
    pub(crate) fn begin_idle(&mut self, cpu: usize, since_ns: u64) {
        let full = self.is_full(cpu);
        let c = &mut self.cpus[cpu];
        c.pelt.stop(self.now, full);
        c.idleness.begin(since_ns);
    }

    /// Notes that `cpu` becomes busy.
    pub(crate) fn end_idle(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        c.idleness.end(self.now);
        c.pelt.start(self.now);
    }

    /// Returns the time for which `cpu` was busy since this was last taken, in nanoseconds.
    pub(crate) fn busy_ns(&self, cpu: usize) -> u64 {
        let c = &self.cpus[cpu];
        c.idleness.busy_ns(self.now, c.current.is_some())
    }

    /// Takes that time.
    pub(crate) fn take_busy(&mut self, cpu: usize) -> u64 {
        let c = &mut self.cpus[cpu];
        c.idleness.take_busy(self.now, c.current.is_some())
    }

    /// Returns whether the running task of `cpu` should give way as soon as possible.
    #[inline]
    pub(crate) fn need_resched(&self, cpu: usize) -> bool {
        self.cpus[cpu].need_resched
    }

    /// Takes the request to reschedule `cpu` back.
    #[inline]
    pub(crate) fn clear_resched(&mut self, cpu: usize) {
        self.cpus[cpu].need_resched = false;
    }

    #[inline]
    pub(crate) fn current(&self, cpu: usize) -> Option<TaskId> {
        self.cpus[cpu].current
    }

    /// Asks `cpu` to reschedule. Returns whether it was asked before.
    pub(crate) fn ask_resched(&mut self, cpu: usize) -> bool {
        std::mem::replace(&mut self.cpus[cpu].need_resched, true)
    }
}

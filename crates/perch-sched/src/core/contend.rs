// SPDX-License-Identifier: GPL-2.0-or-later
//! Time in the kernel, and cache lines of its own that many CPUs want: who pays.
//!
//! Waiting for a line keeps a CPU busy for so long, whatever its sibling does. Who runs there
//! pays before its next operation; what a CPU waits for while nobody runs there, or on the way to
//! another task, the next one pays, less the time that the CPU was idle in between.

use super::Sched;
use crate::hardware::{Access, Field, Symbol};
use crate::id::TaskId;

impl Sched<'_> {
    /// A kernel function on `cpu`, which is at work, reads or writes a field of the root domain.
    /// Costs nothing on a machine whose file has no figures for contended lines.
    #[inline]
    pub(crate) fn line(&mut self, cpu: usize, symbol: Symbol, field: Field, access: Access) {
        if self.lines.lines.is_some() {
            self.use_line(cpu, symbol, field, access);
        }
    }

    /// Whether the machine has figures for contended lines.
    #[inline]
    pub(crate) fn has_lines(&self) -> bool {
        self.lines.lines.is_some()
    }

    /// Whether the root domain's flag says that some CPU is crowded.
    pub(crate) fn is_overloaded(&self) -> bool {
        self.lines.overload
    }

    #[inline(never)]
    fn use_line(&mut self, cpu: usize, symbol: Symbol, field: Field, access: Access) {
        // Who runs there pays at its next step, so the steps of a streak must be events again.
        self.end_streak(cpu);
        let Some(lines) = &mut self.lines.lines else {
            return;
        };
        let took_ns = lines.access(&self.costs, self.now, cpu, symbol, field, access);
        let c = &mut self.cpus[cpu];
        c.lines.ns += took_ns;
        c.lines.since_ns = self.now;
        self.counts.kernel_ns += took_ns;
    }

    /// Sets or clears the root domain's flag that some CPU is crowded, from `cpu`: it is read
    /// first, and written only when it changes (`set_rd_overloaded()`).
    #[inline]
    pub(crate) fn set_overload(&mut self, cpu: usize, symbol: Symbol, overload: bool) {
        self.line(cpu, symbol, Field::Overloaded, Access::Load);
        if self.lines.overload != overload {
            self.lines.overload = overload;
            self.line(cpu, symbol, Field::Overloaded, Access::Store);
        }
    }

    /// For how long a CPU has been waiting for lines at this moment: so much later is done what
    /// it does next.
    pub(super) fn waited_ns(&self, cpu: usize) -> u64 {
        let lines = self.lines.lines.as_ref();
        lines.map_or(0, |lines| lines.spent_ns(cpu, self.now))
    }

    /// Whether a CPU has waited for lines, and nobody has spent that time yet.
    #[inline]
    pub fn owes(&self, cpu: usize) -> bool {
        self.lines.lines.is_some() && self.cpus[cpu].lines.ns > 0
    }

    /// The running task owes what its CPU has waited for lines. The sibling does not make that
    /// longer, as it does work.
    #[inline]
    pub(super) fn settle_lines(&mut self, cpu: usize) {
        if self.owes(cpu) {
            self.settle_owed(cpu);
        }
    }

    fn settle_owed(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let Some(task) = c.current else {
            return;
        };
        let owed_ns = std::mem::take(&mut c.lines.ns);
        self.tasks[task].debt_ns += owed_ns * u64::from(c.speed_1024) / 1024;
    }

    /// A CPU was idle until now: some of what it owed it has spent meanwhile.
    #[inline]
    pub(super) fn rest_lines(&mut self, cpu: usize) {
        if !self.owes(cpu) {
            return;
        }
        let c = &mut self.cpus[cpu];
        let spent_ns = c.lines.ns.min(self.now - c.lines.since_ns);
        c.lines.ns -= spent_ns;
        c.idleness.add_busy(spent_ns);
    }

    /// A task works for so long in the kernel, nanoseconds at full capacity, before it goes on.
    #[inline]
    pub fn charge_kernel(&mut self, cpu: usize, task: TaskId, work_ns: u64) {
        self.tasks[task].debt_ns += work_ns;
        self.note_kernel(cpu, work_ns);
    }

    /// So much work is the kernel's.
    #[inline]
    pub fn note_kernel(&mut self, cpu: usize, work_ns: u64) {
        self.counts.kernel_ns += self.cpus[cpu].wall_ns(work_ns);
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The charges for time in the kernel, and for cache lines of the kernel's own that many CPUs
//! contend for.
//!
//! A CPU that waits for a line is busy for a certain time, whatever its sibling does. The task that
//! runs there is charged this time before its next operation. If the CPU waits while no task runs
//! there, or on the way to another task, the next task is charged, less the time that the CPU was
//! idle in between.

use super::Sched;
use crate::hardware::{Access, Costs, Field, Lines, Symbol};
use crate::id::TaskId;
use crate::observe::Observed;

impl Sched<'_> {
    /// A kernel function on `cpu`, which executes it now, reads or writes a field of the root
    /// domain. This costs nothing on a machine whose file has no figures for contended lines.
    #[inline]
    pub(crate) fn line(&mut self, cpu: usize, symbol: Symbol, field: Field, access: Access) {
        if self.lines.lines.is_some() {
            self.use_line(cpu, symbol, field, access);
        }
    }

    /// Returns whether the root domain's flag says that some CPU is overloaded.
    pub(crate) fn is_overloaded(&self) -> bool {
        self.lines.overload
    }

    #[inline(never)]
    fn use_line(&mut self, cpu: usize, symbol: Symbol, field: Field, access: Access) {
        self.wait_for_lines(cpu, |lines, costs, now_ns| {
            lines.access(costs, now_ns, cpu, symbol, field, access)
        });
    }

    /// `cpu` looks for CPUs of a lower priority, and reads the counters of the levels of cpupri from
    /// `first` to `last`.
    #[inline(never)]
    pub(super) fn use_levels(&mut self, cpu: usize, first: u8, last: u8) {
        self.wait_for_lines(cpu, |lines, costs, now_ns| {
            lines.load_levels(costs, now_ns, cpu, first, last)
        });
    }

    /// Makes `cpu` wait for the nanoseconds that `access` returns, which is given the lines, the
    /// machine's costs and the time.
    #[inline(always)]
    fn wait_for_lines(&mut self, cpu: usize, access: impl FnOnce(&mut Lines, &Costs, u64) -> u64) {
        // The task that runs on this CPU is charged at its next step, so the steps of a streak must
        // be events again.
        self.end_streak(cpu);
        let Some(lines) = &mut self.lines.lines else {
            return;
        };
        let took_ns = access(lines, &self.costs, self.rq.now());
        let c = &mut self.cpus[cpu];
        c.lines.ns += took_ns;
        c.lines.since_ns = self.rq.now();
        self.happened(Observed::InKernel { cpu, ns: took_ns });
    }

    /// Sets or clears, from `cpu`, the root domain's flag that some CPU is overloaded. The CPU
    /// reads the flag first, and writes it only when it changes (`set_rd_overloaded()`).
    #[inline]
    pub(crate) fn set_overload(&mut self, cpu: usize, symbol: Symbol, overload: bool) {
        self.line(cpu, symbol, Field::Overloaded, Access::Load);
        if self.lines.overload != overload {
            self.lines.overload = overload;
            self.line(cpu, symbol, Field::Overloaded, Access::Store);
        }
    }

    /// Returns for how many nanoseconds `cpu` will still wait for lines from this moment: whatever
    /// the CPU does next happens that much later.
    pub(super) fn waited_ns(&self, cpu: usize) -> u64 {
        let lines = self.lines.lines.as_ref();
        lines.map_or(0, |lines| lines.spent_ns(cpu, self.rq.now()))
    }

    /// Returns whether `cpu` has waited for lines for a time that was not charged to any task yet.
    #[inline]
    pub fn owes(&self, cpu: usize) -> bool {
        self.cpus[cpu].lines.ns > 0
    }

    /// Charges the running task of `cpu` the time that the CPU has waited for lines. A busy sibling
    /// makes work take longer, but not this time, so the charge is scaled down by the CPU's speed.
    #[inline]
    pub(super) fn settle_lines(&mut self, cpu: usize) {
        if self.owes(cpu) {
            self.settle_owed(cpu);
        }
    }

    fn settle_owed(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let Some(task) = self.rq.current(cpu) else {
            return;
        };
        let owed_ns = std::mem::take(&mut c.lines.ns);
        self.rq.task_mut(task).debt_ns += owed_ns * u64::from(c.speed_1024) / 1024;
    }

    /// Reduces the time that `cpu`, which was idle until now, has still to charge to a task. The
    /// CPU has spent the time since its last wait began waiting instead of idle, so that time
    /// counts as busy.
    #[inline]
    pub(super) fn rest_lines(&mut self, cpu: usize) {
        if !self.owes(cpu) {
            return;
        }
        let c = &mut self.cpus[cpu];
        let spent_ns = c.lines.ns.min(self.rq.now() - c.lines.since_ns);
        c.lines.ns -= spent_ns;
        self.rq.idleness_mut(cpu).add_busy(spent_ns);
    }

    /// Charges `task` the kernel work `work_ns`, in nanoseconds at full capacity, before it goes
    /// on.
    #[inline]
    pub fn charge_kernel(&mut self, cpu: usize, task: TaskId, work_ns: u64) {
        self.rq.task_mut(task).debt_ns += work_ns;
        self.note_kernel(cpu, work_ns);
    }

    /// Counts the work `work_ns` of `cpu` as time in the kernel.
    #[inline]
    pub fn note_kernel(&mut self, cpu: usize, work_ns: u64) {
        let ns = self.cpus[cpu].wall_ns(work_ns);
        self.happened(Observed::InKernel { cpu, ns });
    }
}

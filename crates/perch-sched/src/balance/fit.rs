// SPDX-License-Identifier: GPL-2.0-or-later
//! The tasks that fit a CPU, where CPUs differ in capacity (misfits, since 4.20).

use perch_policy::Change;

use crate::core::Sched;
use crate::era::Stuck;
use crate::id::TaskId;

impl Sched<'_> {
    /// Returns the capacity that `cpu` has now for fair tasks (`capacity_of`).
    pub(super) fn capacity_now(&self, cpu: usize) -> u32 {
        self.host.cpu(cpu).capacity
    }

    /// Returns whether the utilisation of `task`, within its clamps, fits `cpu` with a fifth of its
    /// capacity to spare.
    pub(crate) fn fits(&self, task: TaskId, cpu: usize) -> bool {
        let util = self.rq.task_average(task).util.max(self.rq.expected_util(task));
        let (min, max) = self.rq.task(task).state.uclamp();
        let fits = |util: u32| u64::from(util) * 1280 < u64::from(self.capacity_now(cpu)) * 1024;
        if !self.rules().has(Change::UtilFitsCpu) {
            return fits(util.max(min).min(max));
        }
        // A task that is capped to the CPU's capacity or less always fits, but a cap of full
        // capacity caps nothing. A task that is boosted beyond the CPU's capacity never fits.
        let all = self.host.topology().capacity(cpu);
        let capped = max <= all && !(max == 1024 && all == 1024);
        let boost = min.min(max);
        (capped || fits(util)) && !(util < boost && boost > all)
    }

    /// Notes whether the running task of `cpu` fits there: at every tick and pick, and when no task
    /// is left to run.
    #[inline]
    pub(crate) fn note_misfit(&mut self, cpu: usize) {
        if self.rq.is_unequal() {
            self.balance.cpus[cpu].misfit = self.misfit(cpu);
        }
    }

    /// Returns the load of the CPU's running task if it does not fit there, at least 1; else 0.
    fn misfit(&mut self, cpu: usize) -> u32 {
        let Some(task) = self.rq.fair_current(cpu) else {
            return 0;
        };
        if self.fits(task, cpu) || self.is_stuck(task, cpu) {
            return 0;
        }
        self.rq.task_load(task).max(1)
    }

    /// Returns whether the affinity of `task` leaves it no better CPU, as far as the era checks.
    pub(super) fn is_stuck(&self, task: TaskId, cpu: usize) -> bool {
        let allowed = self.rq.allowed(task);
        let topology = self.host.topology();
        match self.rules().stuck {
            Stuck::Nobody => false,
            Stuck::Pinned => allowed.weight() == 1,
            Stuck::NowhereLarger => {
                let here = topology.capacity(cpu);
                allowed.iter().all(|c| topology.capacity(c) <= here)
            }
        }
    }
}

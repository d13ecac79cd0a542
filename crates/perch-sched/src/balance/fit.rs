// SPDX-License-Identifier: GPL-2.0-or-later
//! Which tasks fit a CPU, where CPUs differ in capacity (misfits, since 4.20).

use crate::core::Sched;
use crate::era::Stuck;
use crate::id::TaskId;

impl Sched<'_> {
    /// What a CPU offers now to fair tasks (`capacity_of`).
    pub(super) fn capacity_now(&self, cpu: usize) -> u32 {
        self.host.cpu(cpu).capacity
    }

    /// Whether what a task uses, or is clamped to, fits a CPU with a fifth to spare.
    pub(crate) fn fits(&self, task: TaskId, cpu: usize) -> bool {
        let util = self.task_average(task).util.max(self.expected_util(task));
        let (min, max) = self.tasks[task].state.uclamp();
        let fits = |util: u32| u64::from(util) * 1280 < u64::from(self.capacity_now(cpu)) * 1024;
        if self.rules.balance.clamps_util {
            return fits(util.max(min).min(max));
        }
        // A cap that the CPU can honour makes everything fit, but at full capacity caps nothing;
        // a boost beyond the CPU makes nothing fit.
        let all = self.host.topology().capacity(cpu);
        let capped = max <= all && !(max == 1024 && all == 1024);
        let boost = min.min(max);
        (capped || fits(util)) && !(util < boost && boost > all)
    }

    /// Notes whether the task that runs on a CPU fits there: at every tick and pick, and when
    /// nobody is left to run.
    #[inline]
    pub(crate) fn note_misfit(&mut self, cpu: usize) {
        if self.unequal {
            self.cpus[cpu].balance.misfit = self.misfit(cpu);
        }
    }

    /// The load of a CPU's running task if it does not fit there, at least 1; else 0.
    fn misfit(&mut self, cpu: usize) -> u32 {
        let Some(task) = self.fair_current(cpu) else {
            return 0;
        };
        if self.fits(task, cpu) || self.is_stuck(task, cpu) {
            return 0;
        }
        self.task_load(task).max(1)
    }

    /// Whether a task's affinity leaves it no better CPU, as far as the era looks.
    pub(super) fn is_stuck(&self, task: TaskId, cpu: usize) -> bool {
        let allowed = &self.affinities[self.tasks[task].affinity];
        let topology = self.host.topology();
        match self.rules.balance.stuck {
            Stuck::Nobody => false,
            Stuck::Pinned => allowed.weight() == 1,
            Stuck::NowhereLarger => {
                let here = topology.capacity(cpu);
                allowed.iter().all(|c| topology.capacity(c) <= here)
            }
        }
    }
}

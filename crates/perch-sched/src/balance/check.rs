// SPDX-License-Identifier: GPL-2.0-or-later
//! The check of the balancer's books.

use super::sums::Sums;
use super::words::has;
use crate::core::Sched;
use crate::{Violation, hold};

impl Sched<'_> {
    /// Returns whether the running task of `cpu` is noted as one that does not fit there.
    pub(crate) fn is_misfit(&self, cpu: usize) -> bool {
        self.balance.cpus[cpu].misfit > 0
    }

    /// Checks that a CPU is marked as crowded exactly when it has more than one task, that the root
    /// domain's flag is set then, and that only a task that could run elsewhere is a misfit.
    pub(crate) fn check_balance(&self, cpu: usize) -> Result<(), Violation> {
        let (current, nr) = (self.rq.current(cpu), self.rq.nr(cpu));
        hold!(
            !self.is_misfit(cpu)
                || self.rq.is_unequal() && current.is_some_and(|t| !self.is_stuck(t, cpu)),
            "a misfit of load {} with current {current:?}",
            self.balance.cpus[cpu].misfit
        );
        let crowded = has(&self.balance.crowded, cpu);
        hold!(crowded == (nr > 1), "crowded {crowded} with {nr} tasks");
        hold!(
            has(&self.balance.fair, cpu) || self.rq.nr_runnable_fair(cpu) == 0,
            "a runnable fair task that no pass would find"
        );
        hold!(
            // Nobody reads the flag where the balancer does not run.
            !crowded || self.is_overloaded() || !self.rq.balances(),
            "crowded, but the machine is not overloaded"
        );
        Ok(())
    }

    /// Checks that the balancer's sums are those of the CPUs' figures that it has counted, and that
    /// these are the CPUs' own unless the CPU is noted as one to be counted again.
    pub(crate) fn check_groups(&self) -> Result<(), Violation> {
        let (topology, groups) = (self.host.topology(), &self.balance.groups);
        for cpu in 0..self.nr_cpus() {
            let (counted, own) = (groups.counted(cpu), Sums::of(self.host.cpu(cpu)));
            hold!(
                counted == own || groups.is_stale(cpu),
                "cpu {cpu} counts as {counted:?}, is {own:?}"
            );
        }
        for number in 0..topology.nr_domains() {
            let domain = topology.domain(number);
            let shapes = groups.of_domain(number).iter().enumerate();
            for (g, shape) in shapes.filter(|(_, shape)| shape.weight > 1) {
                let set = domain.group(g);
                let walked = set.iter().map(|cpu| groups.counted(cpu)).sum();
                let kept = groups.sums(shape, self.host.cpus());
                hold!(kept == walked, "domain {number}, group {g}: {kept:?}, not {walked:?}");
            }
        }
        Ok(())
    }
}

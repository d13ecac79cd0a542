// SPDX-License-Identifier: GPL-2.0-or-later
//! Machines whose CPUs differ in capacity: tasks that do not fit their CPU (misfits, since 4.20),
//! and the busiest group among unequal CPUs. Read in 5.6, 5.10, 6.1 and 7.2.
//!
//! The model leaves out, here as everywhere, energy-aware scheduling, which keeps the balancer
//! quiet until a CPU is overutilised, and capacity lost to heat or to other classes.

use perch_policy::Change;

use super::imbalance::{Group, LbEnv};
use super::sums::{Capacity, GroupType};
use crate::core::Sched;

impl Sched<'_> {
    /// Returns whether the busy `cpu` of an asymmetric domain wants idle CPUs to look for work: it
    /// does for its misfit, if there are larger CPUs. The number of other busy CPUs in its LLC does
    /// not count there.
    pub(super) fn kicks_for_misfit(&self, cpu: usize) -> bool {
        self.balance.cpus[cpu].misfit > 0
            && self.host.topology().capacity(cpu) < self.balance.largest
    }

    /// Returns the statistics of a group of an asymmetric domain that is not the local one.
    pub(super) fn unequal_group(&self, number: usize, g: usize) -> Group {
        let shape = &self.balance.groups.of_domain(number)[g];
        let mut group = self.group(shape, self.balance.groups.yardstick(number));
        let set = self.host.topology().domain(number).group(g);
        let misfits = set.iter().map(|c| self.balance.cpus[c].misfit);
        group.misfit = misfits.max().unwrap_or(0);
        if group.misfit > 0 && group.group_type < GroupType::Misfit {
            group.group_type = GroupType::Misfit;
        }
        group
    }

    /// Returns the busiest group of an asymmetric domain but the local one, if the balancing CPU
    /// may take from any. It may take misfits only if it is larger and has room for them, and it
    /// takes nothing from larger CPUs that have no more than a task each.
    pub(super) fn busiest_unequal(&self, env: &LbEnv, local: usize) -> Option<usize> {
        let number = env.domain;
        let shapes = self.balance.groups.of_domain(number);
        let here = self.group(&shapes[local], self.balance.groups.yardstick(number));
        let mut busiest: Option<(usize, Group)> = None;
        for g in (local + 1..shapes.len()).chain(0..local) {
            let group = self.unequal_group(number, g);
            let takes = match group.group_type {
                _ if group.running == 0 => false,
                GroupType::Overloaded | GroupType::LlcBalance => true,
                GroupType::Misfit => {
                    here.group_type == GroupType::HasSpare && self.is_larger_than(env, local, g)
                }
                _ => !self.is_smaller_than(env, local, g),
            };
            if takes && busiest.is_none_or(|(_, than)| self.is_busier(&group, &than)) {
                busiest = Some((g, group));
            }
        }
        busiest.map(|(g, _)| g)
    }

    /// Returns whether misfits of a group would fit better on the balancing CPU.
    fn is_larger_than(&self, env: &LbEnv, local: usize, group: usize) -> bool {
        let (rules, cpu) = (self.rules(), env.cpu);
        let most = |g| self.capacity_of_group(env.domain, g).most;
        if !rules.has(Change::LargerByTwentieth) {
            return rules.is_larger(most(local), most(group));
        }
        // A thread beside a busy one offers less than its capacity says.
        let core = self.host.topology().core_span(cpu);
        let alone = core.iter().all(|c| c == cpu || self.host.is_idle(c));
        alone && rules.is_larger(self.capacity_now(cpu), most(group))
    }

    fn capacity_of_group(&self, number: usize, group: usize) -> Capacity {
        let groups = &self.balance.groups;
        groups.capacity(&groups.of_domain(number)[group], self.host.cpus())
    }

    /// Returns whether tasks of a group would be worse off on the balancing CPU.
    fn is_smaller_than(&self, env: &LbEnv, local: usize, group: usize) -> bool {
        let rules = self.rules();
        let least = |g| self.capacity_of_group(env.domain, g).least;
        let here = if rules.has(Change::LargerByTwentieth) {
            self.capacity_now(env.cpu)
        } else {
            least(local)
        };
        rules.is_larger(least(group), here)
    }

    /// Returns whether a group is busier than another, which was found before it.
    fn is_busier(&self, group: &Group, than: &Group) -> bool {
        if group.group_type != than.group_type {
            return group.group_type > than.group_type;
        }
        match group.group_type {
            GroupType::HasSpare => {
                group.idle < than.idle || group.idle == than.idle && group.running > than.running
            }
            GroupType::FullyBusy => self.rules().has(Change::LastFullyBusy),
            // 7.2 takes the first of equal groups, earlier kernels the last.
            GroupType::Misfit if self.rules().has(Change::MisfitNoFailure) => {
                group.misfit > than.misfit
            }
            GroupType::Misfit => group.misfit >= than.misfit,
            GroupType::Overloaded | GroupType::LlcBalance => group.avg_load > than.avg_load,
        }
    }

    /// Returns whether the only task of `source` is better off there than on `cpu`, which is in the
    /// same asymmetric domain. The task has its CPU for itself, and the balancer would have to push
    /// it off.
    pub(super) fn is_better_off(&self, source: usize, cpu: usize) -> bool {
        let rules = self.rules();
        let (there, here) = (self.capacity_now(source), self.capacity_now(cpu));
        self.rq.nr_runnable_fair(source) == 1
            && if rules.has(Change::LargerByTwentieth) {
                !rules.is_larger(here, there)
            } else {
                here < there
            }
    }

    /// Returns whether any group of an asymmetric domain but the local one has a misfit.
    pub(super) fn any_misfit(&self, number: usize, local: usize) -> bool {
        let domain = self.host.topology().domain(number);
        let mut others = (0..domain.groups()).filter(|&g| g != local);
        others.any(|g| domain.group(g).iter().any(|c| self.balance.cpus[c].misfit > 0))
    }

    /// Active balance for a misfit: moves the task that ran least recently. Waiting tasks come before
    /// the running one because the kernel's stopper tries them first: it does not know for which task
    /// it was called. Returns whether a task moved.
    pub(super) fn pull_misfit(&mut self, source: usize, cpu: usize) -> bool {
        let mut after = self.rq.first_turn();
        while let Some((turn, task)) = self.rq.coldest(source, after) {
            after = turn;
            if self.rq.may_run_on(task, cpu) && !self.rq.is_delayed(task) {
                self.move_waiting(task, source, cpu);
                return true;
            }
        }
        false
    }
}

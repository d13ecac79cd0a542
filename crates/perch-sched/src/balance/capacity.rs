// SPDX-License-Identifier: GPL-2.0-or-later
//! The capacities of groups. A pass updates those of its CPU's own group only, so other groups are
//! compared by figures that are as old as their own last passes (`update_group_capacity`).

use perch_policy::Level;

use super::imbalance::{Idle, LbEnv};
use super::sums::Capacity;
use crate::core::Sched;

impl Sched<'_> {
    /// Updates the capacity of the balancing CPU's group, where something may take
    /// capacity from a CPU: what real-time tasks leave of the CPU itself, or the sum of the groups of
    /// the domain below. A newidle pass leaves it to the next one for as long as the domain's interval.
    #[inline]
    pub(super) fn update_capacity(&mut self, env: &LbEnv) {
        if self.rq.has_rt() {
            self.update_group_capacity(env);
        }
    }

    #[inline(never)]
    fn update_group_capacity(&mut self, env: &LbEnv) {
        let &LbEnv { cpu, level, idle, .. } = env;
        let topology = self.host.topology().clone();
        let state = &self.balance.cpus[cpu].domains[level];
        let set = topology.domain(env.domain).group(state.local_group);
        let interval = state.interval_ns.max(self.rq.tick_ns());
        let next_ns = &mut self.balance.capacity_next_ns[set.number()];
        if idle == Idle::Newly && self.rq.now() < *next_ns {
            return;
        }
        *next_ns = self.rq.now() + interval;
        if level == 0 {
            let left = self.scale_capacity(cpu);
            return self.host.set_group_capacity(set.number(), left, left);
        }
        let (cpus, groups) = (self.host.cpus(), &self.balance.groups);
        let below = self.balance.cpus[cpu].domains[level - 1].domain;
        let capacity: Capacity = if topology.domain(below).level() == Level::Numa {
            // The groups of such a domain overlap.
            set.iter().map(|c| Capacity::of(cpus[c].capacity)).sum()
        } else {
            let shapes = groups.of_domain(below).iter();
            shapes.map(|shape| groups.capacity(shape, cpus)).sum()
        };
        let number = set.number();
        self.balance.groups.set_capacity(cpu, number, capacity);
        self.host.set_group_capacity(number, capacity.sum as u32, capacity.most);
    }

    /// Records and returns the capacity that real-time tasks leave of `cpu` (`scale_rt_capacity`).
    fn scale_capacity(&mut self, cpu: usize) -> u32 {
        let used = self.rq.rt_util(cpu);
        let left = self.host.topology().capacity(cpu).saturating_sub(used);
        self.host.cpu_mut(cpu).capacity = left.max(1);
        left.max(1)
    }
}

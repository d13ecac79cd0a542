// SPDX-License-Identifier: GPL-2.0-or-later
//! An imbalance between two groups of a domain, and the statistics that show it.

use super::sums::{GroupType, Shape, Yardstick};
use crate::core::Sched;

/// The state in which a CPU balances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idle {
    /// The CPU runs a task.
    Busy,
    /// The CPU is idle, and its periodic pass is due.
    Due,
    /// The CPU has just run out of tasks.
    Newly,
}

/// The quantity that should move (`enum migration_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Migrate {
    /// A number of tasks.
    Task,
    /// An amount of utilisation.
    Util,
    /// An amount of load.
    Load,
    /// One task that does not fit its CPU.
    Misfit,
    /// One task that prefers the balancing CPU's LLC.
    LlcTask,
}

/// What a pass works on (`struct lb_env`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct LbEnv {
    /// The CPU that balances, to which tasks move.
    pub cpu: usize,
    /// The domain, as an index into the CPU's domains.
    pub level: usize,
    /// The number of the domain in the topology.
    pub domain: usize,
    /// The state of the CPU.
    pub idle: Idle,
    /// True if the domain's CPUs differ in capacity.
    pub unequal: bool,
}

/// An imbalance that a pass has found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Imbalance {
    /// The index of the busiest group in the domain.
    pub group: usize,
    /// The quantity that should move.
    pub migrate: Migrate,
    /// The amount of it that should move.
    pub amount: i64,
}

/// The statistics of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub(super) load: u64,
    pub(super) util: u64,
    pub(super) capacity: u64,
    pub running: u32,
    pub idle: u32,
    pub(super) weight: u32,
    pub group_type: GroupType,
    /// The load per capacity; of overloaded groups only.
    pub avg_load: u64,
    /// The largest load of a task that does not fit its CPU; 0 if all do.
    pub misfit: u32,
}

impl Group {
    pub(super) fn set_avg_load(&mut self) {
        self.avg_load = self.load * 1024 / self.capacity.max(1);
    }
}

impl Sched<'_> {
    /// Returns a pass of `cpu` over its domain at `level`.
    pub(crate) fn lb_env(&self, cpu: usize, level: usize, idle: Idle) -> LbEnv {
        let domain = self.balance.cpus[cpu].domains[level].domain;
        let unequal = self.host.topology().domain(domain).asymmetric();
        LbEnv { cpu, level, domain, idle, unequal }
    }

    /// Returns the statistics of one group.
    #[inline]
    pub(crate) fn group(&self, shape: &Shape, yardstick: Yardstick) -> Group {
        let sums = self.balance.groups.sums(shape, self.host.cpus());
        let capacity = self.balance.groups.capacity(shape, self.host.cpus()).sum;
        let mut group = Group {
            load: sums.load,
            util: sums.util,
            capacity,
            running: sums.running as u32,
            idle: self.balance.groups.idle(shape),
            weight: shape.weight,
            group_type: GroupType::of(shape.weight, capacity, &sums, yardstick),
            avg_load: 0,
            misfit: 0,
        };
        if group.group_type == GroupType::Overloaded {
            group.set_avg_load();
        }
        group
    }
}

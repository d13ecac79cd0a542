// SPDX-License-Identifier: GPL-2.0-or-later
//! The capacities of groups of CPUs. The kernel adds them up when it balances, and compares groups by
//! these figures on fork and exec, so they are as old as each group's last balancing pass.

use perch_policy::{Host, SetView, Topology, Wake};

use crate::moment::{Cpu, CpuRow, Row};

/// The capacity of a group of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupCapacity {
    /// The number of the group's set.
    pub set: u32,
    /// The sum of its CPUs' capacities.
    pub sum: u32,
    /// The largest of them.
    pub most: u32,
}

impl GroupCapacity {
    /// Returns the capacity of a set whose CPUs have these capacities.
    pub(crate) fn of(set: SetView<'_>, capacity: impl Fn(usize) -> u32) -> GroupCapacity {
        let (sum, most) = set
            .iter()
            .map(capacity)
            .fold((0u32, 0), |(sum, most), c| (sum.saturating_add(c), most.max(c)));
        GroupCapacity { set: set.number() as u32, sum, most }
    }

    /// Returns the capacity of a set as the CPUs' rows have it.
    pub(crate) fn now(set: SetView<'_>, cpus: &[Row<CpuRow>]) -> GroupCapacity {
        GroupCapacity::of(set, |cpu| cpus[cpu][Cpu::Capacity].min(u32::MAX.into()) as u32)
    }

    /// Sets the capacity in the host that the policy is asked about. A set that the machine does not
    /// have is left out.
    pub(crate) fn put(&self, host: &mut Host) {
        if (self.set as usize) < host.topology().nr_sets() {
            host.set_group_capacity(self.set as usize, self.sum, self.most);
        }
    }
}

/// Returns whether a wake-up compares groups: a fork, an exec, or one among unequal CPUs, where kernels
/// up to 5.6 do so.
pub(crate) fn compares(topology: &Topology, wake: &Wake) -> bool {
    wake.fork || wake.exec || topology.asym_span(wake.this_cpu).is_some()
}

/// Returns the capacities of a host's groups for the record of a wake-up
/// ([`WakeUp::capacities`](crate::WakeUp::capacities)).
pub fn group_capacities(host: &Host, wake: &Wake) -> Vec<GroupCapacity> {
    let topology = host.topology();
    if !compares(topology, wake) {
        return Vec::new();
    }
    let other = |set: usize| {
        let (sum, most) = host.group_capacity(set);
        let now = GroupCapacity::of(topology.set_numbered(set), |cpu| host.cpu(cpu).capacity);
        let is = GroupCapacity { sum, most, ..now };
        (is != now).then_some(is)
    };
    (0..topology.nr_sets()).filter_map(other).collect()
}

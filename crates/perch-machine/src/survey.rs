// SPDX-License-Identifier: GPL-2.0-or-later
//! The meaning of a surveyed topology (sysfs, hwloc) for the scheduler, by the kernel's own rules.

use crate::draft::Group;
use std::collections::BTreeMap;

/// Gathers `cpus`, whose caches nobody knows, into one LLC for each package's part in a node.
pub(crate) fn by_home(cpus: &[u32], packages: &[Group], nodes: &[Group]) -> Vec<Vec<u32>> {
    let home = |groups: &[Group], cpu: u32| {
        groups
            .iter()
            .position(|group| group.cpus.binary_search(&cpu).is_ok())
    };
    let mut homes: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    for &cpu in cpus {
        homes
            .entry((home(packages, cpu), home(nodes, cpu)))
            .or_default()
            .push(cpu);
    }
    homes.into_values().collect()
}

/// Keeps the clusters that are larger than a core and smaller than an LLC: x86 kernels report the
/// sharers of an L2 as a cluster even where that is one core, and Arm's kernels report the whole of
/// a legacy big.LITTLE cluster, which is already an LLC. The kernel drops both levels too.
pub(crate) fn real_clusters(
    mut clusters: Vec<Group>,
    cores: &[Group],
    llcs: &[Group],
) -> Vec<Group> {
    let within = |small: &[u32], large: &[u32]| {
        small.len() < large.len() && small.iter().all(|cpu| large.binary_search(cpu).is_ok())
    };
    clusters.retain(|cluster| {
        let one_core =
            cluster.cpus.len() == 1 || cores.iter().any(|core| core.cpus == cluster.cpus);
        let llc = llcs.iter().find(|llc| llc.cpus.contains(&cluster.cpus[0]));
        !one_core && llc.is_some_and(|llc| within(&cluster.cpus, &llc.cpus))
    });
    clusters
}

/// Where a node cuts an LLC, returns the parts that the scheduler sees; else nothing.
pub(crate) fn declared(llcs: &[Group], nodes: &[Group]) -> Vec<Group> {
    let mut parts = Vec::new();
    for llc in llcs {
        for node in nodes {
            let both = |cpu: &&u32| node.cpus.binary_search(*cpu).is_ok();
            let cpus: Vec<u32> = llc.cpus.iter().filter(both).copied().collect();
            if !cpus.is_empty() {
                let place = llc.place.clone();
                parts.push(Group { cpus, place });
            }
        }
    }
    if parts.len() == llcs.len() {
        Vec::new()
    } else {
        parts
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Machines made of another machine: of some of its CPUs, or with smaller last-level caches.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use crate::model::Machine;

/// The reason why the LLCs of a machine cannot be split into so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot split each last-level cache into {asked}: a core stays whole, and the cache with the \
     fewest cores has {most}: expected 1 to {most}"
)]
pub struct SplitError {
    /// The parts that were asked for.
    pub asked: usize,
    /// The most parts that are possible: the cores of the LLC that has the fewest.
    pub most: usize,
}

/// Gives groups dense numbers in the order in which they are met.
struct Dense<K>(HashMap<K, u32>);

impl<K: Eq + Hash> Dense<K> {
    fn new() -> Dense<K> {
        Dense(HashMap::new())
    }

    fn number(&mut self, group: K) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(group).or_insert(next)
    }

    /// Returns the groups in the order of their numbers.
    fn groups(self) -> impl Iterator<Item = K> {
        let by_number: BTreeMap<u32, K> =
            self.0.into_iter().map(|(group, at)| (at, group)).collect();
        by_number.into_values()
    }
}

impl Machine {
    /// Returns the machine that has only the CPUs `keep` (ascending), numbered from 0 up in that
    /// order. Nodes without a CPU go; capacities stay, so none of them need be 1024.
    ///
    /// # Panics
    /// Panics when `keep` is empty, or names a CPU that the machine does not have.
    pub fn part(&self, keep: &[u32]) -> Machine {
        assert!(!keep.is_empty(), "a machine has a CPU");
        let mut cpus: Vec<_> = keep.iter().map(|&cpu| self.cpus[cpu as usize].clone()).collect();
        let nodes: BTreeSet<usize> = cpus.iter().map(|cpu| cpu.node as usize).collect();
        let place = |node: u32| nodes.range(..node as usize).count() as u32;
        let (mut core, mut cluster, mut llc) = (Dense::new(), Dense::new(), Dense::new());
        let (mut declared, mut package) = (Dense::new(), Dense::new());
        for cpu in &mut cpus {
            cpu.core = core.number(cpu.core);
            cpu.cluster = cpu.cluster.map(|own| cluster.number(own));
            cpu.llc = llc.number(cpu.llc);
            cpu.declared_llc = declared.number(cpu.declared_llc);
            cpu.package = package.number(cpu.package);
            cpu.node = place(cpu.node);
        }
        let distances = |&from: &usize| {
            let row = &self.node_distance[from];
            nodes.iter().map(|&to| row[to]).collect()
        };
        let mut part =
            Machine { cpus, node_distance: nodes.iter().map(distances).collect(), ..self.clone() };
        part.set_llc_bytes(llc.groups().map(|old| self.llc_bytes(old)).collect());
        part
    }

    /// Returns the machine with each last-level cache split into `parts`, by whole cores in the
    /// order of their lowest CPUs; by whole clusters where the cache has clusters of which each part
    /// can have equally many. Where the cores cannot be divided evenly, parts differ by one core.
    /// Each part has its share of the cache's bytes.
    ///
    /// # Errors
    /// [`SplitError`] when `parts` is 0 or exceeds the cores of an LLC.
    pub fn split_llcs(&self, parts: usize) -> Result<Machine, SplitError> {
        // For each LLC as the scheduler sees it, its cores in the order of their lowest CPUs.
        let mut cores: Vec<Vec<u32>> = vec![Vec::new(); self.declared_llcs()];
        for cpu in &self.cpus {
            let own = &mut cores[cpu.declared_llc as usize];
            if !own.contains(&cpu.core) {
                own.push(cpu.core);
            }
        }
        let most = cores.iter().map(Vec::len).min().unwrap_or(0);
        if parts == 0 || parts > most {
            return Err(SplitError { asked: parts, most });
        }
        let mut part_of: HashMap<u32, usize> = HashMap::new();
        for own in &cores {
            let clusters = self.clusters_of(own);
            match clusters {
                Some(clusters) if clusters.len() % parts == 0 => {
                    for (index, cluster) in clusters.iter().enumerate() {
                        let part = index * parts / clusters.len();
                        part_of.extend(cluster.iter().map(|&core| (core, part)));
                    }
                }
                _ => part_of.extend(
                    own.iter().enumerate().map(|(index, &core)| (core, index * parts / own.len())),
                ),
            }
        }
        let mut machine = self.clone();
        let (mut llc, mut declared, mut cluster) = (Dense::new(), Dense::new(), Dense::new());
        for cpu in &mut machine.cpus {
            let part = (cpu.declared_llc, part_of[&cpu.core]);
            cpu.llc = llc.number((cpu.llc, part));
            cpu.declared_llc = declared.number(part);
            cpu.cluster = cpu.cluster.map(|own| cluster.number((own, part)));
        }
        machine.drop_small_clusters();
        let share = |bytes: u64| (bytes / parts as u64).max(1);
        machine.hardware.llc_bytes = share(self.hardware.llc_bytes);
        let bytes = llc.groups().map(|(old, _)| share(self.llc_bytes(old)));
        machine.set_llc_bytes(bytes.collect());
        if parts > 1 {
            machine.sources.push(format!("each last-level cache is split into {parts}"));
        }
        Ok(machine)
    }

    /// The cores of each cluster among `cores`; none unless each of these is in a cluster.
    fn clusters_of(&self, cores: &[u32]) -> Option<Vec<Vec<u32>>> {
        let mut number = Dense::new();
        let mut clusters: Vec<Vec<u32>> = Vec::new();
        for &core in cores {
            let first = self.cpus.iter().find(|cpu| cpu.core == core)?;
            let at = number.number(first.cluster?) as usize;
            if at == clusters.len() {
                clusters.push(Vec::new());
            }
            clusters[at].push(core);
        }
        Some(clusters)
    }

    /// A cluster that was cut down to a core, or that is now a whole LLC, is no cluster.
    fn drop_small_clusters(&mut self) {
        let mut cores: HashMap<u32, BTreeSet<u32>> = HashMap::new();
        let mut llcs: HashMap<u32, usize> = HashMap::new();
        let mut sizes: HashMap<u32, usize> = HashMap::new();
        for cpu in &self.cpus {
            *llcs.entry(cpu.declared_llc).or_default() += 1;
            if let Some(cluster) = cpu.cluster {
                cores.entry(cluster).or_default().insert(cpu.core);
                *sizes.entry(cluster).or_default() += 1;
            }
        }
        let mut number = Dense::new();
        for cpu in &mut self.cpus {
            let real = |own: &u32| cores[own].len() > 1 && sizes[own] < llcs[&cpu.declared_llc];
            cpu.cluster = cpu.cluster.filter(real).map(|own| number.number(own));
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! From a machine to its scheduling domains and their groups, as the kernel would build them.

use std::collections::{BTreeSet, HashMap};

use perch_machine::Machine;

use super::{Level, Topology};
use crate::ffi;
use crate::ffi::generated::{
    PERCH_SD_ASYM as SD_ASYM, PERCH_SD_BALANCE_FORK as SD_BALANCE_FORK,
    PERCH_SD_CLUSTER as SD_CLUSTER, PERCH_SD_LLC as SD_LLC, PERCH_SD_NUMA as SD_NUMA,
    PERCH_SD_PREFER_SIBLING as SD_PREFER_SIBLING, PERCH_SD_SMT as SD_SMT,
    PERCH_SD_WAKE_AFFINE as SD_WAKE_AFFINE,
};

/// Nodes further apart than this are left alone by wake_affine and fork balancing: the kernel's
/// default `node_reclaim_distance`.
const RECLAIM_DISTANCE: u32 = 30;

/// CPUs by what they share, and the tables as they grow.
pub(super) struct Builder<'a> {
    machine: &'a Machine,
    /// Per CPU, per level below NUMA: the set of that level, whatever its size.
    spans: Vec<[u32; 4]>,
    /// Per node, per NUMA distance: the set of CPUs within it.
    reach: Vec<Vec<u32>>,
    known: HashMap<Vec<u64>, u32>,
    made: HashMap<(Level, u32, u32), u32>,
    /// Number of different capacities on the machine.
    kinds: usize,
    out: Topology,
}

impl<'a> Builder<'a> {
    pub(super) fn new(machine: &'a Machine) -> Builder<'a> {
        let n = machine.cpus.len();
        let capacities = machine.cpus.iter().map(|c| c.capacity);
        let kinds = capacities.clone().collect::<BTreeSet<_>>().len();
        let place = ffi::Place {
            core_set: ffi::NONE,
            cluster_set: ffi::NONE,
            llc_set: ffi::NONE,
            llc: ffi::NONE,
            asym_set: ffi::NONE,
            capacity: 0,
            domains: [ffi::NONE; ffi::MAX_LEVELS + 1],
        };
        let mut out = Topology {
            pool: Vec::new(),
            sets: Vec::new(),
            domains: Vec::new(),
            group_sets: Vec::new(),
            places: vec![place; n],
            llcs: Vec::new(),
            llc_of_set: Vec::new(),
            asyms: Vec::new(),
            has_clusters: false,
            has_smt: false,
            llc_kib: (machine.cpus.iter())
                .map(|cpu| (machine.llc_bytes(cpu.llc) >> 10).min(u64::from(u32::MAX)) as u32)
                .collect(),
            homes: machine.cpus.iter().map(|c| [c.node, c.declared_llc]).collect(),
            rankings: machine.cpus.iter().map(|cpu| cpu.ranking).collect(),
            apart: Vec::new(),
        };
        for (place, capacity) in out.places.iter_mut().zip(capacities) {
            place.capacity = capacity;
        }
        Builder {
            machine,
            spans: vec![[ffi::NONE; 4]; n],
            reach: Vec::new(),
            known: HashMap::new(),
            made: HashMap::new(),
            kinds,
            out,
        }
    }

    pub(super) fn build(mut self) -> Topology {
        self.find_spans();
        self.find_reach();
        for cpu in 0..self.machine.cpus.len() {
            self.build_chain(cpu);
        }
        self.name_places();
        self.out.llc_of_set = vec![ffi::NONE; self.out.sets.len()];
        let shared = self.out.llcs.iter().chain(&self.out.asyms);
        for (index, &set) in shared.enumerate() {
            self.out.llc_of_set[set as usize] = index as u32;
        }
        self.out
    }

    /// The number of the set with these CPUs (ascending).
    fn intern(&mut self, cpus: &[usize]) -> u32 {
        let first = cpus[0] / 64;
        let last = cpus[cpus.len() - 1] / 64;
        let mut words = vec![0u64; last - first + 1];
        for &cpu in cpus {
            words[cpu / 64 - first] |= 1 << (cpu % 64);
        }
        let mut key = words.clone();
        key.push(first as u64);
        let capacities = || cpus.iter().map(|&cpu| self.machine.cpus[cpu].capacity);
        let (capacity, max_capacity) = (capacities().sum(), capacities().max().unwrap_or(0));
        let out = &mut self.out;
        *self.known.entry(key).or_insert_with(|| {
            out.sets.push(ffi::Set {
                first: first as u32,
                words: words.len() as u32,
                offset: out.pool.len() as u32,
                weight: cpus.len() as u32,
                capacity,
                max_capacity,
            });
            out.pool.extend(words);
            out.sets.len() as u32 - 1
        })
    }

    fn find_spans(&mut self) {
        let cpus = &self.machine.cpus;
        // A cluster that is as wide as its LLC is not a level of its own: the kernel's cluster mask
        // then falls back to the core.
        let mut llc_size = HashMap::new();
        let mut cluster_size = HashMap::new();
        for c in cpus {
            *llc_size.entry(c.declared_llc).or_insert(0) += 1;
            if let Some(cluster) = c.cluster {
                *cluster_size.entry(cluster).or_insert(0) += 1;
            }
        }
        let mut members: HashMap<(u32, u32), Vec<usize>> = HashMap::new();
        let mut keys = Vec::with_capacity(cpus.len());
        for (cpu, c) in cpus.iter().enumerate() {
            let cluster = c.cluster.filter(|k| cluster_size[k] < llc_size[&c.declared_llc]);
            let cls = cluster.map_or((0, c.core), |k| (1, k));
            let key = [(0, c.core), cls, (2, c.declared_llc), (3, c.node)];
            for (level, k) in key.into_iter().enumerate() {
                if level == 0 || k != key[level - 1] {
                    members.entry(k).or_default().push(cpu);
                }
            }
            keys.push(key);
        }
        let mut numbers = HashMap::new();
        for (cpu, key) in keys.iter().enumerate() {
            for (level, k) in key.iter().enumerate() {
                let set = *numbers.entry(*k).or_insert_with(|| self.intern(&members[k]));
                self.spans[cpu][level] = set;
            }
        }
    }

    fn find_reach(&mut self) {
        let machine = self.machine;
        let mut by_node = vec![Vec::new(); machine.nodes()];
        for (cpu, c) in machine.cpus.iter().enumerate() {
            by_node[c.node as usize].push(cpu);
        }
        let mut distances: Vec<u32> = machine.node_distance.iter().flatten().copied().collect();
        distances.sort_unstable();
        distances.dedup();
        for row in &machine.node_distance {
            let mut reach = Vec::new();
            for &limit in distances.iter().filter(|&&d| d > 10) {
                let near = (0..machine.nodes()).filter(|&m| row[m] <= limit);
                let mut cpus: Vec<usize> = near.flat_map(|m| by_node[m].clone()).collect();
                cpus.sort_unstable();
                if !cpus.is_empty() {
                    reach.push(self.intern(&cpus));
                }
            }
            self.reach.push(reach);
        }
    }

    fn weight(&self, set: u32) -> u32 {
        self.out.sets[set as usize].weight
    }

    fn cpus_of(&self, set: u32) -> Vec<usize> {
        self.out.set(set).iter().collect()
    }

    /// The CPU's levels, degenerate ones left out: (level, set, NUMA distance index).
    fn levels(&self, cpu: usize) -> Vec<(Level, u32, u32)> {
        let node = self.machine.cpus[cpu].node as usize;
        let near = [Level::Smt, Level::Cls, Level::Mc, Level::Pkg];
        let near = near.into_iter().zip(self.spans[cpu]).map(|(level, set)| (level, set, 0));
        let far = self.reach[node].iter().enumerate();
        let far = far.map(|(i, &set)| (Level::Numa, set, i as u32 + 1));
        let mut levels: Vec<(Level, u32, u32)> = Vec::new();
        for (level, set, distance) in near.chain(far) {
            let below = levels.last().map_or(1, |&(_, set, _)| self.weight(set));
            // PKG may be narrower than MC where one LLC spans nodes: the kernel trims it away.
            if self.weight(set) > below {
                levels.push((level, set, distance));
            }
        }
        // Four levels within a node and as many distances as perch-machine lets in.
        assert!(
            levels.len() <= ffi::MAX_LEVELS,
            "{} levels of domains on a machine that was not checked",
            levels.len()
        );
        levels
    }

    fn build_chain(&mut self, cpu: usize) {
        let levels = self.levels(cpu);
        let node = self.machine.cpus[cpu].node;
        for (i, &(level, set, _)) in levels.iter().enumerate() {
            // Overlapping NUMA spans: the same CPUs are grouped differently from each node.
            let key = (level, set, if level == Level::Numa { node } else { ffi::NONE });
            let domain = match self.made.get(&key) {
                Some(&domain) => domain,
                None => {
                    let below = (i > 0).then(|| levels[i - 1].1);
                    let domain = self.make_domain(cpu, levels[i], below);
                    self.made.insert(key, domain);
                    domain
                }
            };
            self.out.places[cpu].domains[i] = domain;
            // Spreading over siblings first would spread over CPUs of different capacity.
            if i > 0 && self.out.domains[domain as usize].flags & SD_ASYM != 0 {
                let child = self.out.places[cpu].domains[i - 1];
                self.out.domains[child as usize].flags &= !SD_PREFER_SIBLING;
            }
        }
    }

    /// Number of different capacities in a set.
    fn kinds(&self, set: u32) -> usize {
        let cpus = self.out.set(set).iter();
        let capacities: BTreeSet<u32> = cpus.map(|c| self.out.places[c].capacity).collect();
        capacities.len()
    }

    fn make_domain(
        &mut self,
        cpu: usize,
        (level, set, distance): (Level, u32, u32),
        below: Option<u32>,
    ) -> u32 {
        let near = SD_BALANCE_FORK | SD_WAKE_AFFINE;
        let mut flags = match level {
            Level::Smt => near | SD_PREFER_SIBLING | SD_SMT | SD_LLC,
            Level::Cls => near | SD_PREFER_SIBLING | SD_CLUSTER | SD_LLC,
            Level::Mc => near | SD_PREFER_SIBLING | SD_LLC,
            Level::Pkg => near | SD_PREFER_SIBLING,
            Level::Numa if self.distance(distance) > RECLAIM_DISTANCE => SD_NUMA,
            Level::Numa => near | SD_NUMA,
        };
        if self.kinds(set) > 1 {
            flags |= SD_ASYM;
        }
        let groups = self.groups(cpu, set, distance, below);
        let first_group = self.out.group_sets.len() as u32;
        let count = groups.len() as u32;
        self.out.group_sets.extend(groups);
        let imb_numa_nr = if level == Level::Numa { self.imb_numa_nr(cpu, set) } else { 0 };
        self.out.domains.push(ffi::Domain {
            flags,
            set,
            imbalance_pct: if level == Level::Smt { 110 } else { 117 },
            imb_numa_nr,
            groups: count,
            first_group,
            level: level as u32,
            pad: 0,
        });
        self.out.domains.len() as u32 - 1
    }

    /// The distance behind a 1-based index among the machine's distances beyond local.
    fn distance(&self, index: u32) -> u32 {
        let mut all: Vec<u32> = self.machine.node_distance.iter().flatten().copied().collect();
        all.sort_unstable();
        all.dedup();
        all.into_iter().filter(|&d| d > 10).nth(index as usize - 1).unwrap_or(0)
    }

    /// The groups of a domain, the one that has `cpu` first: for each CPU not yet covered, what
    /// its own domains span just below this one.
    fn groups(&mut self, cpu: usize, set: u32, distance: u32, below: Option<u32>) -> Vec<u32> {
        let span = self.cpus_of(set);
        let mut groups = Vec::new();
        let mut covered = vec![false; self.machine.cpus.len()];
        let own = span.iter().position(|&c| c == cpu).unwrap_or(0);
        for i in 0..span.len() {
            let c = span[(own + i) % span.len()];
            if covered[c] {
                continue;
            }
            let group = match (i, below) {
                (0, Some(set)) => set,
                _ => self.widest_below(c, set, distance),
            };
            self.out.set(group).iter().for_each(|c| covered[c] = true);
            groups.push(group);
        }
        groups
    }

    /// The widest level of `cpu` that is nearer than `distance` (an index as in
    /// [`Builder::levels`]) and lies inside `set` without filling it; `cpu` alone if none. Where
    /// NUMA spans overlap, a level of the same distance may lie inside too: the kernel builds
    /// groups from the levels below only.
    fn widest_below(&mut self, cpu: usize, set: u32, distance: u32) -> u32 {
        let limit = self.out.set(set);
        let inside = |s: u32| self.out.set(s).iter().all(|c| limit.contains(c));
        let levels = self.levels(cpu);
        let mut below = levels.iter().rev().filter(|l| l.2 < distance.max(1));
        match below.find(|l| self.weight(l.1) < limit.weight() && inside(l.1)) {
            Some(&(_, set, _)) => set,
            None => self.intern(&[cpu]),
        }
    }

    /// How many tasks a node may run before fork and the NUMA balancer spread them: one per LLC of
    /// the node, an eighth of its CPUs when that is one LLC; over several times the span of the
    /// nearest NUMA level as many times more.
    fn imb_numa_nr(&self, cpu: usize, set: u32) -> u32 {
        let node = self.weight(self.spans[cpu][3]);
        let base = match node / self.weight(self.spans[cpu][2]) {
            0 | 1 => (node >> 3).max(1),
            llcs => llcs,
        };
        let nearest = self.reach[self.machine.cpus[cpu].node as usize][0];
        base * (self.weight(set) / self.weight(nearest)).max(1)
    }

    /// Fills in the sets and LLC of each CPU from its domains.
    fn name_places(&mut self) {
        let mut llcs: HashMap<u32, u32> = HashMap::new();
        for cpu in 0..self.machine.cpus.len() {
            let mut place = self.out.places[cpu];
            place.core_set = self.spans[cpu][0];
            for domain in place.domains.iter().take_while(|&&d| d != ffi::NONE) {
                let d = self.out.domains[*domain as usize];
                self.out.has_smt |= d.flags & SD_SMT != 0;
                self.out.has_clusters |= d.flags & SD_CLUSTER != 0;
                if d.flags & SD_LLC != 0 {
                    place.llc_set = d.set;
                }
                if d.flags & SD_CLUSTER != 0 {
                    place.cluster_set = d.set;
                }
                let every = d.flags & SD_ASYM != 0 && self.kinds(d.set) == self.kinds;
                if place.asym_set == ffi::NONE && every {
                    place.asym_set = d.set;
                }
            }
            if place.cluster_set == place.llc_set {
                place.cluster_set = ffi::NONE;
            }
            if place.llc_set != ffi::NONE {
                let next = self.out.llcs.len() as u32;
                place.llc = *llcs.entry(place.llc_set).or_insert_with(|| {
                    self.out.llcs.push(place.llc_set);
                    next
                });
            }
            self.out.places[cpu] = place;
        }
        for place in &self.out.places {
            let (set, out) = (place.asym_set, &mut self.out.asyms);
            if set != ffi::NONE && !self.out.llcs.contains(&set) && !out.contains(&set) {
                out.push(set);
            }
        }
    }
}

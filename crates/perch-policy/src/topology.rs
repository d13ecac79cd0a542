// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's view of a machine: which CPUs share what, and the scheduling domains.
//!
//! Levels from the inside out are SMT, CLS (cluster), MC (last-level cache as declared), PKG (the
//! node) and one NUMA level per distance; a level that adds nothing to the one below is dropped,
//! as the kernel drops degenerate domains (mechanisms.md §8).

use std::collections::HashMap;
use std::sync::Arc;

use perch_machine::Machine;

use crate::ffi;
use crate::mask::bits;

/// Whose CPUs a domain joins, from the inside out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Level {
    /// Threads of one core.
    Smt = 0,
    /// Cores of one cluster.
    Cls = 1,
    /// CPUs of one last-level cache.
    Mc = 2,
    /// CPUs of one node.
    Pkg = 3,
    /// Nodes within a distance.
    Numa = 4,
}

const SD_SMT: u32 = 0x1;
const SD_CLUSTER: u32 = 0x2;
const SD_LLC: u32 = 0x4;
const SD_NUMA: u32 = 0x8;
const SD_BALANCE_FORK: u32 = 0x10;
const SD_WAKE_AFFINE: u32 = 0x20;
const SD_PREFER_SIBLING: u32 = 0x40;

/// Nodes further apart than this are left alone by wake_affine and fork balancing: the kernel's
/// default `node_reclaim_distance`.
const RECLAIM_DISTANCE: u32 = 30;

/// The shape of a machine as the policy reads it; built once, shared by every simulation of it.
#[derive(Debug)]
pub struct Topology {
    pool: Vec<u64>,
    sets: Vec<ffi::Set>,
    domains: Vec<ffi::Domain>,
    group_sets: Vec<u32>,
    places: Vec<ffi::Place>,
    llcs: Vec<u32>,
    llc_of_set: Vec<u32>,
    capacities: Vec<u32>,
    has_clusters: bool,
    has_smt: bool,
}

/// One scheduling domain.
#[derive(Clone, Copy, Debug)]
pub struct DomainView<'a> {
    topology: &'a Topology,
    raw: &'a ffi::Domain,
}

/// One group of CPUs of a domain.
#[derive(Clone, Copy, Debug)]
pub struct SetView<'a> {
    topology: &'a Topology,
    raw: &'a ffi::Set,
}

impl<'a> SetView<'a> {
    /// Number of CPUs.
    pub fn weight(&self) -> u32 {
        self.raw.weight
    }

    /// Whether the CPU belongs to it.
    pub fn contains(&self, cpu: usize) -> bool {
        let word = (cpu / 64).wrapping_sub(self.raw.first as usize);
        word < self.raw.words as usize && self.words()[word] >> (cpu % 64) & 1 != 0
    }

    /// Number of the first word of [`SetView::words`] on the machine.
    pub fn first_word(&self) -> usize {
        self.raw.first as usize
    }

    /// The words that hold its CPUs.
    pub fn words(&self) -> &'a [u64] {
        let from = self.raw.offset as usize;
        &self.topology.pool[from..from + self.raw.words as usize]
    }

    /// The CPUs, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + 'a {
        bits(self.words(), self.first_word())
    }
}

impl<'a> DomainView<'a> {
    /// Which level it is of.
    pub fn level(&self) -> Level {
        [Level::Smt, Level::Cls, Level::Mc, Level::Pkg, Level::Numa][self.raw.level as usize]
    }

    /// Its CPUs.
    pub fn span(&self) -> SetView<'a> {
        self.topology.set(self.raw.set)
    }

    /// Its CPUs all share the last-level cache.
    pub fn shares_llc(&self) -> bool {
        self.raw.flags & SD_LLC != 0
    }

    /// Tasks should spread over this domain's sibling groups before they pile up in one.
    pub fn prefers_sibling(&self) -> bool {
        self.raw.flags & SD_PREFER_SIBLING != 0
    }

    /// How much busier, in percent of the other, a group must be to count as imbalanced.
    pub fn imbalance_pct(&self) -> u32 {
        self.raw.imbalance_pct
    }

    /// NUMA: how many tasks may run in one node while others are idle.
    pub fn imb_numa_nr(&self) -> u32 {
        self.raw.imb_numa_nr
    }

    /// Number of groups.
    pub fn groups(&self) -> usize {
        self.raw.groups as usize
    }

    /// The `i`th group.
    pub fn group(&self, i: usize) -> SetView<'a> {
        self.topology.set(self.topology.group_sets[self.raw.first_group as usize + i])
    }
}

impl Topology {
    /// Builds the kernel's view of a checked machine.
    pub fn new(machine: &Machine) -> Arc<Topology> {
        Arc::new(Builder::new(machine).build())
    }

    /// Number of CPUs.
    pub fn nr_cpus(&self) -> usize {
        self.places.len()
    }

    /// Highest capacity of a CPU, 1 to 1024.
    pub fn capacity(&self, cpu: usize) -> u32 {
        self.capacities[cpu]
    }

    /// Number of last-level cache domains.
    pub fn nr_llcs(&self) -> usize {
        self.llcs.len()
    }

    /// The CPU's last-level cache domain, if it shares one with anybody.
    pub fn llc(&self, cpu: usize) -> Option<usize> {
        let llc = self.places[cpu].llc;
        (llc != ffi::NONE).then_some(llc as usize)
    }

    /// The CPUs of a last-level cache domain.
    pub fn llc_span(&self, llc: usize) -> SetView<'_> {
        self.set(self.llcs[llc])
    }

    /// SMT siblings of a CPU and itself.
    pub fn core_span(&self, cpu: usize) -> SetView<'_> {
        self.set(self.places[cpu].core_set)
    }

    /// The CPU's cluster domain, where it has one inside its last-level cache.
    pub fn cluster_span(&self, cpu: usize) -> Option<SetView<'_>> {
        let set = self.places[cpu].cluster_set;
        (set != ffi::NONE).then(|| self.set(set))
    }

    /// Whether some core has several threads.
    pub fn has_smt(&self) -> bool {
        self.has_smt
    }

    /// Whether some domain has a cluster level.
    pub fn has_clusters(&self) -> bool {
        self.has_clusters
    }

    /// The CPU's domains, lowest first.
    pub fn domains(&self, cpu: usize) -> impl Iterator<Item = DomainView<'_>> {
        self.domain_numbers(cpu).map(|number| self.domain(number))
    }

    /// The numbers of the CPU's domains, lowest first.
    pub fn domain_numbers(&self, cpu: usize) -> impl Iterator<Item = usize> + '_ {
        let chain = self.places[cpu].domains.iter();
        chain.take_while(|&&d| d != ffi::NONE).map(|&d| d as usize)
    }

    /// Number of domains.
    pub fn nr_domains(&self) -> usize {
        self.domains.len()
    }

    /// A domain by its number.
    pub fn domain(&self, number: usize) -> DomainView<'_> {
        DomainView { topology: self, raw: &self.domains[number] }
    }

    fn set(&self, number: u32) -> SetView<'_> {
        SetView { topology: self, raw: &self.sets[number as usize] }
    }

    pub(crate) fn new_llcs(&self) -> Box<[ffi::Llc]> {
        let weight = |set: u32| self.sets[set as usize].weight;
        self.llcs
            .iter()
            .map(|&set| ffi::Llc { set, nr_idle_scan: weight(set), idle_cores: 1, pad: 0 })
            .collect()
    }

    pub(crate) fn raw_host(&self) -> ffi::Host {
        ffi::Host {
            pool: self.pool.as_ptr(),
            sets: self.sets.as_ptr(),
            domains: self.domains.as_ptr(),
            group_sets: self.group_sets.as_ptr(),
            places: self.places.as_ptr(),
            idle: std::ptr::null(),
            sched_idle: std::ptr::null(),
            cpus: std::ptr::null(),
            llcs: std::ptr::null_mut(),
            llc_of_set: self.llc_of_set.as_ptr(),
            nr_cpus: self.places.len() as u32,
            has_clusters: self.has_clusters.into(),
            has_smt: self.has_smt.into(),
            pad: [0; 2],
        }
    }
}

/// CPUs by what they share, and the tables as they grow.
struct Builder<'a> {
    machine: &'a Machine,
    /// Per CPU, per level below NUMA: the set of that level, whatever its size.
    spans: Vec<[u32; 4]>,
    /// Per node, per NUMA distance: the set of CPUs within it.
    reach: Vec<Vec<u32>>,
    known: HashMap<Vec<u64>, u32>,
    made: HashMap<(Level, u32, u32), u32>,
    out: Topology,
}

impl<'a> Builder<'a> {
    fn new(machine: &'a Machine) -> Builder<'a> {
        let n = machine.cpus.len();
        let place = ffi::Place {
            core_set: ffi::NONE,
            cluster_set: ffi::NONE,
            llc_set: ffi::NONE,
            llc: ffi::NONE,
            domains: [ffi::NONE; ffi::MAX_LEVELS],
        };
        let out = Topology {
            pool: Vec::new(),
            sets: Vec::new(),
            domains: Vec::new(),
            group_sets: Vec::new(),
            places: vec![place; n],
            llcs: Vec::new(),
            llc_of_set: Vec::new(),
            capacities: machine.cpus.iter().map(|c| c.capacity).collect(),
            has_clusters: false,
            has_smt: false,
        };
        Builder {
            machine,
            spans: vec![[ffi::NONE; 4]; n],
            reach: Vec::new(),
            known: HashMap::new(),
            made: HashMap::new(),
            out,
        }
    }

    fn build(mut self) -> Topology {
        self.find_spans();
        self.find_reach();
        for cpu in 0..self.machine.cpus.len() {
            self.build_chain(cpu);
        }
        self.name_places();
        self.out.llc_of_set = vec![ffi::NONE; self.out.sets.len()];
        for (llc, &set) in self.out.llcs.iter().enumerate() {
            self.out.llc_of_set[set as usize] = llc as u32;
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
        let out = &mut self.out;
        *self.known.entry(key).or_insert_with(|| {
            out.sets.push(ffi::Set {
                first: first as u32,
                words: words.len() as u32,
                offset: out.pool.len() as u32,
                weight: cpus.len() as u32,
            });
            out.pool.extend(words);
            out.sets.len() as u32 - 1
        })
    }

    fn find_spans(&mut self) {
        let cpus = &self.machine.cpus;
        // A cluster that is as wide as its LLC is no level of its own: the kernel's cluster mask
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
        levels.truncate(ffi::MAX_LEVELS);
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
        }
    }

    fn make_domain(
        &mut self,
        cpu: usize,
        (level, set, distance): (Level, u32, u32),
        below: Option<u32>,
    ) -> u32 {
        let near = SD_BALANCE_FORK | SD_WAKE_AFFINE;
        let flags = match level {
            Level::Smt => near | SD_PREFER_SIBLING | SD_SMT | SD_LLC,
            Level::Cls => near | SD_PREFER_SIBLING | SD_CLUSTER | SD_LLC,
            Level::Mc => near | SD_PREFER_SIBLING | SD_LLC,
            Level::Pkg => near | SD_PREFER_SIBLING,
            Level::Numa if self.distance(distance) > RECLAIM_DISTANCE => SD_NUMA,
            Level::Numa => near | SD_NUMA,
        };
        let groups = self.groups(cpu, set, below);
        let first_group = self.out.group_sets.len() as u32;
        let count = groups.len() as u32;
        self.out.group_sets.extend(groups);
        let imb_numa_nr = self.imb_numa_nr(cpu, level, set);
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
    fn groups(&mut self, cpu: usize, set: u32, below: Option<u32>) -> Vec<u32> {
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
                _ => self.widest_below(c, set),
            };
            self.out.set(group).iter().for_each(|c| covered[c] = true);
            groups.push(group);
        }
        groups
    }

    /// The widest level of `cpu` that lies inside `set` without filling it; `cpu` alone if none.
    fn widest_below(&mut self, cpu: usize, set: u32) -> u32 {
        let limit = self.out.set(set);
        let inside = |s: u32| self.out.set(s).iter().all(|c| limit.contains(c));
        let levels = self.levels(cpu);
        let found = levels.iter().rev().find(|l| self.weight(l.1) < limit.weight() && inside(l.1));
        match found {
            Some(&(_, set, _)) => set,
            None => self.intern(&[cpu]),
        }
    }

    /// How many tasks a node may run before the NUMA balancer spreads them: one an LLC at the
    /// lowest level above the LLC (an eighth of the CPUs when that is one LLC), growing with the
    /// span above it.
    fn imb_numa_nr(&self, cpu: usize, level: Level, set: u32) -> u32 {
        if level != Level::Numa {
            return 0;
        }
        let levels = self.levels(cpu);
        let Some(above) = levels.iter().position(|l| l.0 > Level::Mc) else {
            return 1;
        };
        let span = self.weight(levels[above].1);
        let llc = if above > 0 { self.weight(levels[above - 1].1) } else { 1 };
        let base = match span / llc {
            1 => (span >> 3).max(1),
            llcs => llcs,
        };
        let first = levels.iter().find(|l| l.0 == Level::Numa);
        let first = first.map_or(span, |l| self.weight(l.1));
        base * (self.weight(set) / first).max(1)
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
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's view of a machine: which CPUs share what, and the scheduling domains.
//!
//! Levels from the inside out are SMT, CLS (cluster), MC (last-level cache as declared), PKG (the
//! node) and one NUMA level per distance; a level that adds nothing to the one below is dropped,
//! as the kernel drops degenerate domains (docs/mechanisms/stock.md#balance).

mod build;
mod spread;

use std::sync::Arc;

use perch_machine::Machine;

use crate::ffi;
use crate::ffi::generated::{
    PERCH_SD_ASYM as SD_ASYM, PERCH_SD_BALANCE_FORK as SD_BALANCE_FORK,
    PERCH_SD_CLUSTER as SD_CLUSTER, PERCH_SD_LLC as SD_LLC, PERCH_SD_NUMA as SD_NUMA,
    PERCH_SD_PREFER_SIBLING as SD_PREFER_SIBLING, PERCH_SD_SMT as SD_SMT,
    PERCH_SD_WAKE_AFFINE as SD_WAKE_AFFINE,
};
use crate::image::Image;
use crate::mask::bits;

/// The level of the machine whose CPUs a domain joins, from the inside out.
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

/// The shape of a machine as the policy reads it; built once, shared by every simulation of it.
#[derive(Debug)]
pub struct Topology {
    pool: Vec<u64>,
    sets: Vec<ffi::Set>,
    domains: Vec<ffi::Domain>,
    group_sets: Vec<u32>,
    places: Vec<ffi::Place>,
    llcs: Vec<u32>,
    /// Asymmetric domains that are no LLC.
    asyms: Vec<u32>,
    llc_of_set: Vec<u32>,
    has_clusters: bool,
    has_smt: bool,
    llc_kib: Vec<u32>,
    /// Node and last-level cache of each CPU, each counted from 0; a CPU that shares no cache has
    /// one of its own here.
    homes: Vec<[u32; 2]>,
    /// How the kernel ranks each CPU among preferred cores, 0 to 255.
    rankings: Vec<u32>,
    /// The numbers of the CPUs that are in no domain, ascending.
    apart: Vec<u32>,
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
    number: u32,
}

impl<'a> SetView<'a> {
    /// Its number: the same CPUs have the same one, wherever they form a group. Below
    /// [`Topology::nr_sets`].
    pub fn number(&self) -> usize {
        self.number as usize
    }

    /// Number of CPUs.
    pub fn weight(&self) -> u32 {
        self.raw.weight
    }

    /// True if the CPU belongs to the domain.
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
    /// The level of the machine whose CPUs it joins.
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

    /// True if wake-ups may draw tasks from one CPU of the domain to another.
    pub fn wake_affine(&self) -> bool {
        self.raw.flags & SD_WAKE_AFFINE != 0
    }

    /// Its CPUs differ in capacity.
    pub fn asymmetric(&self) -> bool {
        self.raw.flags & SD_ASYM != 0
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
        Arc::new(build::Builder::new(machine).build())
    }

    /// Builds the kernel's view of a checked machine whose CPUs have these numbers, ascending, in a
    /// kernel of `nr_cpus`. A number below that which none of them has is that of a CPU apart (offline
    /// or isolated): as in the kernel, it has no domain, and is in no set but that of its core, where
    /// it is alone.
    ///
    /// # Panics
    /// Panics when there are not as many numbers as CPUs, or when one is not below `nr_cpus`.
    pub fn numbered(machine: &Machine, numbers: &[u32], nr_cpus: usize) -> Arc<Topology> {
        assert_eq!(numbers.len(), machine.cpus.len(), "a number for each CPU");
        assert!(numbers.iter().all(|&cpu| (cpu as usize) < nr_cpus));
        let dense = build::Builder::new(machine).build();
        Arc::new(dense.spread(numbers, nr_cpus))
    }

    /// Number of CPUs, those apart included.
    pub fn nr_cpus(&self) -> usize {
        self.places.len()
    }

    /// True if the CPU is none of the machine's: [`Topology::numbered`].
    pub fn is_apart(&self, cpu: usize) -> bool {
        self.apart.binary_search(&(cpu as u32)).is_ok()
    }

    /// Highest capacity of a CPU, 1 to 1024.
    pub fn capacity(&self, cpu: usize) -> u32 {
        self.places[cpu].capacity
    }

    /// How the kernel ranks the CPU among preferred cores: the higher, the sooner. 0: not at all.
    pub fn ranking(&self, cpu: usize) -> u32 {
        self.rankings[cpu]
    }

    /// Number of last-level cache domains.
    pub fn nr_llcs(&self) -> usize {
        self.llcs.len()
    }

    /// The CPU's last-level cache domain, if it shares one with another CPU.
    pub fn llc(&self, cpu: usize) -> Option<usize> {
        let llc = self.places[cpu].llc;
        (llc != ffi::NONE).then_some(llc as usize)
    }

    /// The CPUs of a last-level cache domain.
    pub fn llc_span(&self, llc: usize) -> SetView<'_> {
        self.set(self.llcs[llc])
    }

    /// Size of the CPU's last-level cache, KiB.
    pub(crate) fn llc_kib(&self, cpu: usize) -> u32 {
        self.llc_kib[cpu]
    }

    /// Number of nodes.
    pub fn nr_nodes(&self) -> usize {
        self.homes.iter().map(|&[node, _]| node as usize + 1).max().unwrap_or(0)
    }

    /// The CPU's node, counted from 0.
    pub fn node(&self, cpu: usize) -> usize {
        self.homes[cpu][0] as usize
    }

    /// The CPU's last-level cache as firmware declares it, counted from 0 over all of them, those
    /// that one CPU has to itself included: other numbers than those of [`Topology::llc`].
    pub fn cache(&self, cpu: usize) -> usize {
        self.homes[cpu][1] as usize
    }

    /// The CPUs of the lowest domain that has every capacity of the machine; `None` where all
    /// CPUs are equal.
    pub fn asym_span(&self, cpu: usize) -> Option<SetView<'_>> {
        let set = self.places[cpu].asym_set;
        (set != ffi::NONE).then(|| self.set(set))
    }

    /// Number of sets of CPUs with a scan budget and an idle-core flag: the LLCs first, under
    /// their own numbers, then the asymmetric domains that are no LLC.
    pub fn nr_shared(&self) -> usize {
        self.llcs.len() + self.asyms.len()
    }

    /// The CPUs that share a scan budget and an idle-core flag.
    pub fn shared_span(&self, shared: usize) -> SetView<'_> {
        let rest = shared.checked_sub(self.llcs.len());
        self.set(rest.map_or_else(|| self.llcs[shared], |i| self.asyms[i]))
    }

    /// The number, among those of [`Topology::nr_shared`], of a CPU's asymmetric domain.
    pub fn asym(&self, cpu: usize) -> Option<usize> {
        let set = self.places[cpu].asym_set;
        (set != ffi::NONE).then(|| self.llc_of_set[set as usize] as usize)
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

    /// True if some core has several threads.
    pub fn has_smt(&self) -> bool {
        self.has_smt
    }

    /// True if some CPU has a domain of the cluster level.
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

    /// Number of different sets of CPUs.
    pub fn nr_sets(&self) -> usize {
        self.sets.len()
    }

    /// Number of domains.
    pub fn nr_domains(&self) -> usize {
        self.domains.len()
    }

    /// A domain by its number.
    pub fn domain(&self, number: usize) -> DomainView<'_> {
        DomainView { topology: self, raw: &self.domains[number] }
    }

    /// The set of CPUs with this number.
    pub fn set_numbered(&self, number: usize) -> SetView<'_> {
        self.set(number as u32)
    }

    fn set(&self, number: u32) -> SetView<'_> {
        SetView { topology: self, raw: &self.sets[number as usize], number }
    }

    pub(crate) fn new_groups(&self) -> Box<[ffi::Group]> {
        self.sets
            .iter()
            .map(|set| ffi::Group { capacity: set.capacity, max_capacity: set.max_capacity })
            .collect()
    }

    pub(crate) fn new_llcs(&self) -> Box<[ffi::Llc]> {
        let weight = |set: u32| self.sets[set as usize].weight;
        self.llcs
            .iter()
            .chain(&self.asyms)
            .map(|&set| ffi::Llc { set, nr_idle_scan: weight(set), idle_cores: 1, pad: 0 })
            .collect()
    }

    /// The arrays as the native host reads them.
    pub(crate) fn raw(&self) -> ffi::Topology {
        ffi::Topology {
            pool: self.pool.as_ptr() as u64,
            sets: self.sets.as_ptr() as u64,
            domains: self.domains.as_ptr() as u64,
            group_sets: self.group_sets.as_ptr() as u64,
            places: self.places.as_ptr() as u64,
            llc_of_set: self.llc_of_set.as_ptr() as u64,
            llc_sets: self.llcs.as_ptr() as u64,
            nr_cpus: self.places.len() as u32,
            nr_llcs: self.llcs.len() as u32,
            has_clusters: self.has_clusters.into(),
            has_smt: self.has_smt.into(),
            max_capacity: self.places.iter().map(|p| p.capacity).max().unwrap_or(0) as u16,
            pad: 0,
        }
    }

    /// Lays the arrays out in another address space; the `struct perch_topology` that leads to
    /// them.
    pub fn image(&self, image: &mut Image) -> ffi::Topology {
        ffi::Topology {
            pool: image.push(&self.pool),
            sets: image.push(&self.sets),
            domains: image.push(&self.domains),
            group_sets: image.push(&self.group_sets),
            places: image.push(&self.places),
            llc_of_set: image.push(&self.llc_of_set),
            llc_sets: image.push(&self.llcs),
            ..self.raw()
        }
    }
}

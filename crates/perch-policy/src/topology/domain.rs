// SPDX-License-Identifier: GPL-2.0-or-later
//! The scheduling domains.

use super::Topology;
use super::set::SetView;
use crate::ffi;
use crate::ffi::generated::{
    PERCH_SD_ASYM as SD_ASYM, PERCH_SD_LLC as SD_LLC, PERCH_SD_PREFER_SIBLING as SD_PREFER_SIBLING,
    PERCH_SD_WAKE_AFFINE as SD_WAKE_AFFINE,
};

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

/// One scheduling domain.
#[derive(Clone, Copy, Debug)]
pub struct DomainView<'a> {
    topology: &'a Topology,
    raw: &'a ffi::Domain,
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
}

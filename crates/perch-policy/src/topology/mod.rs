// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's view of a machine: which CPUs share what, and the scheduling domains.
//!
//! Levels from the inside out are SMT, CLS (cluster), MC (last-level cache as declared), PKG (the
//! node) and one NUMA level per distance; a level that adds nothing to the one below is dropped,
//! as the kernel drops degenerate domains (docs/mechanisms/stock.md#balance).

mod build;
mod domain;
mod memory;
mod set;
mod spread;

use std::sync::Arc;

use perch_machine::Machine;

use crate::ffi;

pub use domain::{DomainView, Level};
pub use set::SetView;

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

impl Topology {
    /// Builds the kernel's view of a checked machine.
    pub fn new(machine: &Machine) -> Arc<Topology> {
        Arc::new(build::Builder::new(machine).build())
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
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The topology as the policy's C reads it.

use super::Topology;
use crate::ffi;
use crate::image::Image;

impl Topology {
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

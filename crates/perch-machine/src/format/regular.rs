// SPDX-License-Identifier: GPL-2.0-or-later
//! The regular form of a topology: so many packages of so many nodes of so many LLCs, all alike,
//! and the order in which the firmware numbers the CPUs.

use super::raw::RawTopology;
use crate::draft::{Draft, Group};
use crate::error::{MachineError, Place};
use crate::hardware::Hardware;
use crate::model::{MAX_CPUS, Machine};
use schemars::JsonSchema;
use serde::Deserialize;

/// The order in which CPU numbers run through the topology.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Numbering {
    /// The numbers run core by core, with a core's threads next to each other (Arm, POWER).
    #[default]
    Sequential,
    /// The numbers run over all first threads core by core, then over all second threads (Linux on
    /// most x86 servers).
    ThreadsLast,
    /// The numbers run as in threads-last, but consecutive cores alternate between packages (some
    /// x86 firmware).
    PackagesInterleaved,
}

/// A regular topology whose CPUs fit into [`MAX_CPUS`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Regular {
    pub packages: usize,
    pub nodes_per_package: usize,
    /// True where all packages form one node, because the firmware interleaves memory over them.
    pub node_interleave: bool,
    pub llcs_per_node: usize,
    /// The number of clusters of an LLC; 0 where there are no clusters and an LLC holds `cores`
    /// cores.
    pub clusters_per_llc: usize,
    /// The number of cores of a cluster, or of an LLC where there are no clusters.
    pub cores: usize,
    pub threads_per_core: usize,
    pub numbering: Numbering,
}

impl Regular {
    pub(super) fn read(
        raw: &RawTopology,
        place: &Place,
        origin: &str,
    ) -> Result<Regular, MachineError> {
        let value = |key: &str, given: Option<u64>| match given {
            None => Ok(1),
            Some(count @ 1..=8192) => Ok(count as usize),
            Some(count) => Err(Place { key: format!("topology.{key}"), ..place.clone() }.problem(
                origin,
                format!("{count} is out of range"),
                format!("expected 1 to {MAX_CPUS}"),
            )),
        };
        let refuse = |reason: &str, expected: &str| Err(place.problem(origin, reason, expected));
        let (clusters_per_llc, cores) =
            match (raw.clusters_per_llc, raw.cores_per_cluster, raw.cores_per_llc) {
                (Some(clusters), Some(cores), None) => (
                    value("clusters_per_llc", Some(clusters))?,
                    value("cores_per_cluster", Some(cores))?,
                ),
                (None, None, Some(cores)) => (0, value("cores_per_llc", Some(cores))?),
                (None, None, None) => {
                    return refuse(
                        "the number of cores is missing",
                        "expected `cores_per_llc`, or `clusters_per_llc` and `cores_per_cluster`",
                    );
                }
                _ => {
                    return refuse(
                        "the cores of an LLC are not said in one way",
                        "expected `cores_per_llc` alone (no clusters), or `clusters_per_llc` and \
                         `cores_per_cluster` together",
                    );
                }
            };
        if raw.node_interleave && raw.nodes_per_package.is_some() {
            return refuse(
                "`node_interleave` makes one node of all packages, which leaves nothing for \
                 `nodes_per_package` to say",
                "expected one of the two",
            );
        }
        let regular = Regular {
            packages: value("packages", raw.packages)?,
            nodes_per_package: value("nodes_per_package", raw.nodes_per_package)?,
            node_interleave: raw.node_interleave,
            llcs_per_node: value("llcs_per_node", raw.llcs_per_node)?,
            clusters_per_llc,
            cores,
            threads_per_core: value("threads_per_core", raw.threads_per_core)?,
            numbering: raw.numbering,
        };
        regular.fits(place, origin)?;
        Ok(regular)
    }

    fn fits(&self, place: &Place, origin: &str) -> Result<(), MachineError> {
        let factors = [
            self.packages,
            self.nodes_per_package,
            self.llcs_per_node,
            self.clusters_per_llc.max(1),
            self.cores,
            self.threads_per_core,
        ];
        let cpus = factors.iter().try_fold(1usize, |product, factor| product.checked_mul(*factor));
        match cpus {
            Some(1..=MAX_CPUS) => Ok(()),
            Some(0) => Err(place.problem(origin, "the machine has no CPUs", "expected at least 1")),
            Some(cpus) => Err(place.problem(
                origin,
                format!("{cpus} CPUs"),
                format!("a machine may have {MAX_CPUS}"),
            )),
            None => Err(place.problem(
                origin,
                "more CPUs than can be counted",
                format!("a machine may have {MAX_CPUS}"),
            )),
        }
    }

    /// Describes this topology in groups of CPUs.
    pub fn describe(&self, draft: &mut Draft, place: &Place) {
        let cores_per_llc = self.clusters_per_llc.max(1) * self.cores;
        let llcs_per_package = self.nodes_per_package * self.llcs_per_node;
        let cores = self.packages * llcs_per_package * cores_per_llc;
        let cores_per_node =
            if self.node_interleave { cores } else { self.llcs_per_node * cores_per_llc };
        let groups = |cores_each: usize| -> Vec<Group> {
            let members = |group: usize| {
                let range = group * cores_each..(group + 1) * cores_each;
                let mut cpus: Vec<u32> = range
                    .flat_map(|core| (0..self.threads_per_core).map(move |t| (core, t)))
                    .map(|(core, thread)| self.number(core, thread, cores) as u32)
                    .collect();
                cpus.sort_unstable();
                let place = place.clone();
                Group { cpus, place }
            };
            (0..cores / cores_each).map(members).collect()
        };
        draft.cores = groups(1);
        if self.clusters_per_llc > 0 {
            draft.clusters = groups(self.cores);
        }
        draft.llcs = groups(cores_per_llc);
        draft.nodes = groups(cores_per_node);
        draft.packages = groups(llcs_per_package * cores_per_llc);
    }

    /// Returns the number of the CPU that is `thread` of `core`, of `cores` cores in all.
    fn number(&self, core: usize, thread: usize, cores: usize) -> usize {
        match self.numbering {
            Numbering::Sequential => core * self.threads_per_core + thread,
            Numbering::ThreadsLast => thread * cores + core,
            Numbering::PackagesInterleaved => {
                let per_package = cores / self.packages;
                let (package, nth) = (core / per_package, core % per_package);
                thread * cores + nth * self.packages + package
            }
        }
    }
}

impl Machine {
    /// Returns a machine whose parts are all alike, numbered sequentially, with every CPU at
    /// capacity 1024, distances 10 and 20 and the default [`Hardware`].
    ///
    /// `clusters_per_llc` 0 means no clusters; `cores_per_cluster` then counts the cores of an
    /// LLC.
    ///
    /// # Errors
    /// Returns [`MachineError::Invalid`] when the name is not made of letters, digits and `-`, when
    /// another count is 0, or when there are more than [`MAX_CPUS`] CPUs.
    pub fn regular(
        name: &str,
        packages: usize,
        nodes_per_package: usize,
        llcs_per_node: usize,
        clusters_per_llc: usize,
        cores_per_cluster: usize,
        threads_per_core: usize,
    ) -> Result<Machine, MachineError> {
        let regular = Regular {
            packages,
            nodes_per_package,
            node_interleave: false,
            llcs_per_node,
            clusters_per_llc,
            cores: cores_per_cluster,
            threads_per_core,
            numbering: Numbering::Sequential,
        };
        let place = Place::key("topology");
        regular.fits(&place, name)?;
        let mut draft = Draft::new(name, name);
        draft.hardware = Hardware::default();
        regular.describe(&mut draft, &place);
        draft.check()
    }
}

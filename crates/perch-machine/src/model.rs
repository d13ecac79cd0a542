// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine in the form that every other crate reads.

use crate::hardware::Hardware;

/// The largest number of CPUs of a machine: the largest `CONFIG_NR_CPUS` that Linux 7.2 offers on
/// any architecture. The readers refuse a larger machine, and never cut it in silence.
pub const MAX_CPUS: usize = 8192;

/// The largest number of nodes, as in Linux (`NODES_SHIFT` is at most 10).
pub const MAX_NODES: usize = 1024;

/// The largest number of different distances between nodes: each becomes a level of scheduling
/// domains, and the policy's tables hold twelve levels, four of them within a node.
pub const MAX_DISTANCES: usize = 8;

/// One CPU (a hardware thread, which Linux calls a logical CPU).
///
/// Every index is dense and machine-wide: the machine has cores `0..cores()`, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// The physical core; CPUs of one core are SMT siblings.
    pub core: u32,
    /// The group of cores that shares a resource nearer than the last-level cache (an L2, an L3
    /// tag), where the machine has such groups.
    pub cluster: Option<u32>,
    /// The last-level cache in hardware, which decides how far data travels.
    pub llc: u32,
    /// The last-level cache that firmware declares to the kernel, which the scheduler's MC level
    /// spans. It differs from `llc` only on machines with phantom domains
    /// (docs/mechanisms/capacity.md).
    pub declared_llc: u32,
    /// The NUMA node.
    pub node: u32,
    /// The package (socket).
    pub package: u32,
    /// Capacity at the highest frequency, 1 to 1024; the most capable CPU has 1024.
    pub capacity: u32,
    /// How the kernel ranks it among preferred cores of the same capacity, 1 to 255: the higher, the
    /// sooner. 0: not at all.
    pub ranking: u32,
}

/// The distance between two CPUs, by the nearest thing that they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Distance {
    /// The CPUs are the same.
    Cpu = 0,
    /// The CPUs are two threads of one core.
    Core = 1,
    /// The CPUs belong to two cores of one cluster.
    Cluster = 2,
    /// The CPUs share a last-level cache, and are in different clusters (or in none).
    Llc = 3,
    /// The CPUs are in one NUMA node, and have different last-level caches.
    Node = 4,
    /// The CPUs are in one package, and in different nodes.
    Package = 5,
    /// The CPUs are in different packages.
    Machine = 6,
}

impl Distance {
    /// Every distance, nearest first.
    pub const ALL: [Distance; 7] = [
        Distance::Cpu,
        Distance::Core,
        Distance::Cluster,
        Distance::Llc,
        Distance::Node,
        Distance::Package,
        Distance::Machine,
    ];

    /// Returns the distance's name: the nearest thing that the CPUs share.
    pub const fn name(self) -> &'static str {
        match self {
            Distance::Cpu => "same CPU",
            Distance::Core => "core",
            Distance::Cluster => "cluster",
            Distance::Llc => "LLC",
            Distance::Node => "node",
            Distance::Package => "package",
            Distance::Machine => "machine",
        }
    }
}

/// A checked machine: every CPU in one core, LLC, node and package; every cluster inside one LLC;
/// capacities between 1 and 1024 with 1024 present; a distance for each pair of nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The short name, of letters, digits and `-`, that `-m` takes.
    pub name: String,
    /// One line for `perch machine list`.
    pub description: String,
    /// The sources of the facts, one per line.
    pub sources: Vec<String>,
    /// The CPUs; the index is the CPU's number.
    pub cpus: Vec<Cpu>,
    /// `node_distance[a][b]`: the firmware's SLIT, 10 for a node and itself.
    pub node_distance: Vec<Vec<u32>>,
    /// The costs on this machine.
    pub hardware: Hardware,
    /// The bytes of each LLC, where one has others than `hardware.llc_bytes`; else empty.
    pub llc_bytes: Vec<u64>,
}

impl Cpu {
    /// Returns the distance of this CPU from another one.
    pub fn distance(&self, other: &Cpu) -> Distance {
        if self.core == other.core {
            Distance::Core
        } else if self.cluster.is_some() && self.cluster == other.cluster {
            Distance::Cluster
        } else if self.llc == other.llc {
            Distance::Llc
        } else if self.node == other.node {
            Distance::Node
        } else if self.package == other.package {
            Distance::Package
        } else {
            Distance::Machine
        }
    }
}

impl Machine {
    /// Returns the distance between two CPUs.
    ///
    /// # Panics
    /// Panics when a CPU's number is not below `cpus.len()`.
    pub fn distance(&self, a: usize, b: usize) -> Distance {
        if a == b { Distance::Cpu } else { self.cpus[a].distance(&self.cpus[b]) }
    }

    /// Returns the bytes of an LLC.
    pub fn llc_bytes(&self, llc: u32) -> u64 {
        let own = self.llc_bytes.get(llc as usize);
        own.copied().unwrap_or(self.hardware.llc_bytes)
    }

    pub(crate) fn set_llc_bytes(&mut self, bytes: Vec<u64>) {
        let usual = self.hardware.llc_bytes;
        self.llc_bytes = if bytes.iter().all(|own| *own == usual) { Vec::new() } else { bytes };
    }

    /// Returns the number of NUMA nodes.
    pub fn nodes(&self) -> usize {
        self.node_distance.len()
    }
}

/// Counts of the machine's parts.
impl Machine {
    /// Returns the number of packages (sockets).
    pub fn packages(&self) -> usize {
        self.count(|cpu| Some(cpu.package))
    }

    /// Returns the number of physical cores.
    pub fn cores(&self) -> usize {
        self.count(|cpu| Some(cpu.core))
    }

    /// Returns the number of clusters; 0 on a machine without clusters.
    pub fn clusters(&self) -> usize {
        self.count(|cpu| cpu.cluster)
    }

    /// Returns the number of last-level caches in hardware.
    pub fn llcs(&self) -> usize {
        self.count(|cpu| Some(cpu.llc))
    }

    /// Returns the number of last-level caches that firmware declares.
    pub fn declared_llcs(&self) -> usize {
        self.count(|cpu| Some(cpu.declared_llc))
    }

    /// Returns true where any core has several threads.
    pub fn has_smt(&self) -> bool {
        self.cores() < self.cpus.len()
    }

    /// Returns true where CPUs differ in capacity.
    pub fn is_asymmetric(&self) -> bool {
        self.cpus.iter().any(|cpu| cpu.capacity != 1024)
    }

    /// Returns true where the kernel prefers some CPU to another that shares its last-level cache.
    pub fn has_preferred_cores(&self) -> bool {
        let mut seen = vec![None; self.declared_llcs()];
        self.cpus.iter().any(|cpu| {
            let first = seen[cpu.declared_llc as usize].get_or_insert(cpu.ranking);
            *first != cpu.ranking
        })
    }

    /// Returns true where the scheduler sees other last-level caches than the hardware has.
    pub fn has_phantom_llcs(&self) -> bool {
        self.cpus.iter().any(|cpu| cpu.llc != cpu.declared_llc)
    }

    /// Groups are dense from 0, so the highest index gives their number.
    fn count(&self, group: impl Fn(&Cpu) -> Option<u32>) -> usize {
        let last = self.cpus.iter().filter_map(group).max();
        last.map_or(0, |last| last as usize + 1)
    }
}

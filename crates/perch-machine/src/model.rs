// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine as every other crate reads it.

use crate::hardware::Hardware;

/// The most CPUs a machine may have: the largest `CONFIG_NR_CPUS` that Linux 7.2 offers on any
/// architecture. More is an error at the door, never a silent cut.
pub const MAX_CPUS: usize = 8192;

/// The most different distances there may be between nodes: each becomes a level of scheduling
/// domains, and the policy's tables hold twelve levels, four of them within a node.
pub const MAX_DISTANCES: usize = 8;

/// One CPU (a hardware thread; what Linux calls a logical CPU).
///
/// Every index is dense and machine-wide: the machine has cores `0..cores()`, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// The physical core; CPUs of one core are SMT siblings.
    pub core: u32,
    /// The group of cores that shares a resource nearer than the last-level cache (an L2, an L3
    /// tag), where the machine has such groups.
    pub cluster: Option<u32>,
    /// The last-level cache in hardware: what decides how far data travels.
    pub llc: u32,
    /// The last-level cache as firmware declares it to the kernel: what the scheduler's MC level
    /// spans. Differs from `llc` only on machines with phantom domains
    /// (docs/mechanisms/capacity.md).
    pub declared_llc: u32,
    /// The NUMA node.
    pub node: u32,
    /// The package (socket).
    pub package: u32,
    /// Capacity at the highest frequency, 1 to 1024; the most capable CPU has 1024.
    pub capacity: u32,
}

/// How far apart two CPUs are: the nearest thing that they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Distance {
    /// The same CPU.
    Cpu = 0,
    /// Two threads of one core.
    Core = 1,
    /// Two cores of one cluster.
    Cluster = 2,
    /// One last-level cache, different clusters (or no clusters).
    Llc = 3,
    /// One NUMA node, different last-level caches.
    Node = 4,
    /// One package, different nodes.
    Package = 5,
    /// Different packages.
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
}

/// A checked machine: every CPU in one core, LLC, node and package; every cluster inside one LLC;
/// capacities between 1 and 1024 with 1024 present; a distance for each pair of nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Short name: letters, digits, `-`; what `-m` takes.
    pub name: String,
    /// One line for `perch machine list`.
    pub description: String,
    /// Where the facts come from, a line each.
    pub sources: Vec<String>,
    /// The CPUs; the index is the CPU's number.
    pub cpus: Vec<Cpu>,
    /// `node_distance[a][b]`: the firmware's SLIT, 10 for a node and itself.
    pub node_distance: Vec<Vec<u32>>,
    /// What things cost on this machine.
    pub hardware: Hardware,
}

impl Cpu {
    /// How far this CPU is from another one.
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
    /// How far apart two CPUs are.
    ///
    /// # Panics
    /// When a CPU's number is not below `cpus.len()`.
    pub fn distance(&self, a: usize, b: usize) -> Distance {
        match a == b {
            true => Distance::Cpu,
            false => self.cpus[a].distance(&self.cpus[b]),
        }
    }

    /// Number of NUMA nodes.
    pub fn nodes(&self) -> usize {
        self.node_distance.len()
    }
}

/// What the machine has, counted.
impl Machine {
    /// Number of packages (sockets).
    pub fn packages(&self) -> usize {
        self.count(|cpu| Some(cpu.package))
    }

    /// Number of physical cores.
    pub fn cores(&self) -> usize {
        self.count(|cpu| Some(cpu.core))
    }

    /// Number of clusters; 0 on a machine without.
    pub fn clusters(&self) -> usize {
        self.count(|cpu| cpu.cluster)
    }

    /// Number of last-level caches in hardware.
    pub fn llcs(&self) -> usize {
        self.count(|cpu| Some(cpu.llc))
    }

    /// Number of last-level caches as firmware declares them.
    pub fn declared_llcs(&self) -> usize {
        self.count(|cpu| Some(cpu.declared_llc))
    }

    /// Whether any core has several threads.
    pub fn has_smt(&self) -> bool {
        self.cores() < self.cpus.len()
    }

    /// Whether CPUs differ in capacity.
    pub fn is_asymmetric(&self) -> bool {
        self.cpus.iter().any(|cpu| cpu.capacity != 1024)
    }

    /// Whether the scheduler sees other last-level caches than the hardware has.
    pub fn has_phantom_llcs(&self) -> bool {
        self.cpus.iter().any(|cpu| cpu.llc != cpu.declared_llc)
    }

    /// Groups are dense from 0, so the highest index counts them.
    fn count(&self, group: impl Fn(&Cpu) -> Option<u32>) -> usize {
        let last = self.cpus.iter().filter_map(group).max();
        last.map_or(0, |last| last as usize + 1)
    }
}

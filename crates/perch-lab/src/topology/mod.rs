// SPDX-License-Identifier: GPL-2.0-or-later
//! A machine as a guest: the machine that the guest's kernel will find, QEMU's arguments for it,
//! and the parts of the machine that the guest lacks, in words.
//!
//! Each architecture has its own way: QEMU describes an x86-64 guest's machine itself, as a regular
//! grid; perch describes an arm64 guest's in a device tree, which can hold any machine.

mod arm64;
mod memory;
mod tree;
mod x86;

use std::collections::HashMap;

use perch_machine::{Cpu, Machine};

use crate::arch::Arch;
use crate::error::{Error, Result};
use crate::fdt::Damage;
use crate::qemu::Need;
pub(crate) use memory::Memory;
use tree::{Branch, CLUSTER, CORE, Caps, LEVELS};
use x86::Grid;

/// CPUs of a guest when the user asks for no number. Such a guest boots in four seconds without
/// KVM, and has room for two packages of two nodes with two clusters each.
pub const DEFAULT_CPUS: usize = 16;

/// The capacity of a machine's most capable CPUs.
const FULL: u32 = 1024;

/// The number of a machine's CPUs that a guest gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cpus {
    /// Every one.
    All,
    /// No more than so many, at least 1.
    AtMost(usize),
}

/// A machine as a guest.
#[derive(Clone, Debug)]
pub struct Topology {
    machine: Machine,
    left_out: Vec<String>,
    way: Way,
    /// True where the guest's kernel is not told of the clusters.
    clusters_hidden: bool,
}

/// The way in which QEMU learns of the machine.
#[derive(Clone, Debug)]
enum Way {
    /// QEMU gets a place in its grid for every CPU.
    X86(Grid),
    /// QEMU gets a device tree.
    Arm64,
}

impl Topology {
    /// The guest that shows `machine`, or as much of it as `cpus` allows: of arm64 when its CPUs
    /// differ in capacity, else of x86-64.
    ///
    /// # Errors
    /// As [`Topology::of`].
    pub fn new(machine: &Machine, cpus: Cpus) -> Result<Topology> {
        let arch = if machine.is_asymmetric() { Arch::Aarch64 } else { Arch::X86_64 };
        Topology::of(arch, machine, cpus)
    }

    /// The guest of `arch` that shows `machine`, or as much of it as `cpus` allows.
    ///
    /// When CPUs have to go, the shape stays: one CPU of each capacity at least, then two groups at
    /// each level as long as that is possible, and inner levels (threads, clusters) are kept before
    /// outer ones.
    ///
    /// # Errors
    /// [`Error::Input`] when no such guest can look like that: an LLC that spans packages; for
    /// x86-64 CPUs of different capacity, or more of them than interrupts can reach; when `cpus`
    /// leaves none of the most capable CPUs.
    pub fn of(arch: Arch, machine: &Machine, cpus: Cpus) -> Result<Topology> {
        if machine.is_asymmetric() && arch == Arch::X86_64 {
            return Err(Error::Input(format!(
                "{}: its CPUs differ in capacity, and the CPUs of an x86-64 guest are all alike; \
                 leave the architecture out for an arm64 guest, or take a machine without \
                 [[capacity]]",
                machine.name
            )));
        }
        let mut left_out = phantoms(machine)?;
        let mut tree = Branch::of(machine);
        let widest = tree.widest();
        if let Cpus::AtMost(limit) = cpus {
            let caps = tree.best_caps(limit.max(1));
            tree.cut(&caps);
            let kept = tree.widest();
            left_out.extend(cut(machine, &widest, &kept, tree.numbers().len()));
        }
        let mut numbers = tree.numbers();
        left_out.extend(kinds(machine, &numbers)?);
        let way = match arch {
            Arch::X86_64 => {
                let grid = Grid::of(&tree);
                grid.check(machine)?;
                if !numbers.is_sorted() {
                    left_out.push(format!(
                        "the numbering of {}'s CPUs: the guest's are numbered core by core",
                        machine.name
                    ));
                }
                Way::X86(grid)
            }
            Arch::Aarch64 => {
                numbers.sort_unstable();
                Way::Arm64
            }
        };
        Ok(Topology {
            machine: found(machine, &numbers, &mut left_out),
            left_out,
            way,
            clusters_hidden: false,
        })
    }

    /// The same hardware for a kernel that does not know of its clusters: no cache is said to be
    /// shared by their cores, so that the kernel has no domain of clusters and does not scan them.
    /// [`Topology::machine`] keeps the clusters, because what a transfer costs does not change.
    ///
    /// # Errors
    /// [`Error::Input`] when there are no clusters to hide, or in an arm64 guest, whose device tree
    /// says what the machine is.
    pub fn without_clusters(mut self) -> Result<Topology> {
        if !self.has_clusters() {
            return Err(Error::Input(format!(
                "{}: a guest of {} CPUs has no clusters that the kernel could be left without",
                self.machine.name,
                self.cpus()
            )));
        }
        if self.arch() != Arch::X86_64 {
            return Err(Error::Input(format!(
                "{}: clusters are hidden from kernels of x86-64 guests only",
                self.machine.name
            )));
        }
        self.clusters_hidden = true;
        Ok(self)
    }

    /// The machine as the guest's kernel finds it. `perch machine detect` in the guest describes
    /// the same one, except for costs, which here are those of the machine that was asked for, and
    /// for clusters that are hidden ([`Topology::without_clusters`]).
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The parts of the machine asked for that the guest lacks, a phrase each.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Number of CPUs in the guest.
    pub fn cpus(&self) -> usize {
        self.machine.cpus.len()
    }

    /// The guest's architecture.
    pub fn arch(&self) -> Arch {
        match self.way {
            Way::X86(_) => Arch::X86_64,
            Way::Arm64 => Arch::Aarch64,
        }
    }

    /// Returns whether the guest has clusters: groups of cores that share an L2, or the grouping
    /// that stands for one.
    pub fn has_clusters(&self) -> bool {
        self.machine.clusters() > 0
    }

    /// The abilities that QEMU needs for it.
    pub fn need(&self) -> Need {
        Need { arch: self.arch(), l2_clusters: self.has_clusters(), plugin: false }
    }

    /// `-machine`, `-cpu`, `-smp`, `-m` and `-numa`, with this memory, at least 64 MiB a node;
    /// `features` are settings of an x86 CPU, such as `-rdrand`.
    pub(crate) fn arguments(&self, memory: &Memory, features: &[&str]) -> Vec<String> {
        match &self.way {
            Way::X86(grid) => {
                let shares_l2 = self.has_clusters() && !self.clusters_hidden;
                grid.arguments(&self.machine, memory, features, shares_l2)
            }
            Way::Arm64 => arm64::arguments(&self.machine, memory),
        }
    }

    /// Returns whether the tree of [`Topology::device_tree`] has to replace QEMU's own.
    pub(crate) fn has_device_tree(&self) -> bool {
        matches!(self.way, Way::Arm64)
    }

    /// QEMU's device tree `blob` for this guest, with its CPUs described as they should be.
    ///
    /// # Errors
    /// The fault of the blob.
    pub(crate) fn device_tree(&self, blob: &[u8]) -> std::result::Result<Vec<u8>, Damage> {
        arm64::describe(&self.machine, blob)
    }
}

/// The kinds of CPU, by capacity, that a guest with the CPUs `numbers` lacks, in words.
fn kinds(machine: &Machine, numbers: &[u32]) -> Result<Option<String>> {
    let kept = |capacity: &u32| {
        let mut cpus = numbers.iter().map(|&n| &machine.cpus[n as usize]);
        cpus.any(|cpu| cpu.capacity == *capacity)
    };
    let mut lost: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.capacity).collect();
    lost.sort_unstable();
    lost.dedup();
    let all = lost.len();
    lost.retain(|capacity| !kept(capacity));
    // Capacities are relative to the largest, so a CPU of that kind must be left.
    if lost.last() == Some(&FULL) {
        return Err(Error::Input(format!(
            "{}: {} of its CPUs leave none of capacity {FULL}, by which the others are measured; \
             take at least {all}, the number of its kinds",
            machine.name,
            numbers.len()
        )));
    }
    let words: Vec<String> = lost.iter().map(u32::to_string).collect();
    Ok((!lost.is_empty()).then(|| format!("every CPU of capacity {}", words.join(", "))))
}

/// A phrase for a machine whose firmware declares other LLCs than the hardware has: the guest has
/// the declared ones.
fn phantoms(machine: &Machine) -> Result<Vec<String>> {
    let mut package_of = HashMap::new();
    for (number, cpu) in machine.cpus.iter().enumerate() {
        let package = *package_of.entry(cpu.declared_llc).or_insert(cpu.package);
        if package != cpu.package {
            return Err(Error::Input(format!(
                "{}: the LLC of CPU {number} is declared over two packages; a guest's lies inside \
                 one",
                machine.name
            )));
        }
    }
    Ok(if machine.has_phantom_llcs() {
        vec![format!(
            "the {} LLCs of the hardware: the guest has the {} that {}'s firmware declares",
            machine.llcs(),
            machine.declared_llcs(),
            machine.name
        )]
    } else {
        Vec::new()
    })
}

/// The groups that a cut to `kept` took from the machine's `widest`, in words.
fn cut(machine: &Machine, widest: &Caps, kept: &Caps, cpus: usize) -> Option<String> {
    if cpus == machine.cpus.len() {
        return None;
    }
    const WORDS: [(&str, &str); LEVELS] = [
        ("packages", "the machine"),
        ("nodes", "a package"),
        ("LLCs", "a node"),
        ("clusters", "an LLC"),
        ("cores", "a cluster"),
        ("threads", "a core"),
    ];
    let kinds = machine.clusters() == 0;
    let levels = (0..LEVELS).filter(|&level| kept[level] < widest[level]);
    let parts: Vec<String> = levels
        .map(|level| {
            let (word, within) = match level {
                CORE if widest[CLUSTER] == 1 => ("cores", "an LLC"),
                CORE if kinds => ("cores", "a kind"),
                CLUSTER if kinds => ("kinds of CPU", "an LLC"),
                _ => WORDS[level],
            };
            format!("{} of {} {word} in {within}", kept[level], widest[level])
        })
        .collect();
    let all = machine.cpus.len();
    Some(format!(
        "{} of {}'s {all} CPUs: the guest has {cpus} ({})",
        all - cpus,
        machine.name,
        parts.join(", ")
    ))
}

/// The machine of the CPUs `numbers` of `machine`, as a kernel finds it.
fn found(machine: &Machine, numbers: &[u32], left_out: &mut Vec<String>) -> Machine {
    let old = |number: &u32| &machine.cpus[*number as usize];
    let mut nodes = Vec::new();
    let (mut core, mut cluster) = (Dense::default(), Dense::default());
    let (mut llc, mut node, mut package) = (Dense::default(), Dense::default(), Dense::default());
    let cluster_of = clusters(machine, numbers);
    let cpus: Vec<Cpu> = numbers
        .iter()
        .zip(&cluster_of)
        .map(|(number, of)| {
            let cpu = old(number);
            let llc = llc.index(cpu.declared_llc);
            if !nodes.contains(&cpu.node) {
                nodes.push(cpu.node);
            }
            Cpu {
                core: core.index(cpu.core),
                cluster: of.map(|of| cluster.index(of)),
                llc,
                declared_llc: llc,
                node: node.index(cpu.node),
                package: package.index(cpu.package),
                capacity: cpu.capacity,
                ranking: 0,
            }
        })
        .collect();
    if !machine.llc_bytes.is_empty() {
        left_out.push("the sizes of last-level caches that differ: a guest's have one".to_string());
    }
    if numbers.iter().any(|number| old(number).ranking != 0) {
        left_out.push("the ranking of preferred cores: a guest's kernel prefers none".to_string());
    }
    let had = numbers.iter().any(|number| old(number).cluster.is_some());
    if had && cluster_of.iter().all(Option::is_none) {
        left_out.push(
            "the level of clusters: each is as small as a core or as large as its LLC".to_string(),
        );
    }
    let mut raised = false;
    let node_distance = nodes
        .iter()
        .map(|&a| {
            let row = nodes.iter().map(|&b| {
                let distance = machine.node_distance[a as usize][b as usize];
                // The kernel ignores a whole SLIT in which another node is as near as the own one.
                let near = a != b && distance <= 10;
                raised |= near;
                if near { 11 } else { distance }
            });
            row.collect()
        })
        .collect();
    if raised {
        left_out.push("node distances of 10: the guest's are 11, the least Linux takes".into());
    }
    let sources = vec![format!("a guest that shows {}", machine.name)];
    Machine {
        name: machine.name.clone(),
        description: format!("{} as a guest with {} CPUs", machine.name, cpus.len()),
        sources,
        cpus,
        node_distance,
        hardware: machine.hardware.clone(),
        llc_bytes: Vec::new(),
    }
}

/// The cluster of each CPU of `numbers`, where that is larger than a core and smaller than its LLC;
/// the kernel knows no others.
fn clusters(machine: &Machine, numbers: &[u32]) -> Vec<Option<u32>> {
    let cpu = |number: &u32| &machine.cpus[*number as usize];
    let mut sizes: HashMap<(&str, u32), usize> = HashMap::new();
    for number in numbers {
        let cpu = cpu(number);
        *sizes.entry(("core", cpu.core)).or_default() += 1;
        *sizes.entry(("LLC", cpu.declared_llc)).or_default() += 1;
        if let Some(cluster) = cpu.cluster {
            *sizes.entry(("cluster", cluster)).or_default() += 1;
        }
    }
    let real = |number: &u32| {
        let cpu = cpu(number);
        cpu.cluster.filter(|cluster| {
            let size = sizes[&("cluster", *cluster)];
            size > sizes[&("core", cpu.core)] && size < sizes[&("LLC", cpu.declared_llc)]
        })
    };
    numbers.iter().map(real).collect()
}

/// Dense indexes in the order of first appearance.
#[derive(Default)]
struct Dense(HashMap<u32, u32>);

impl Dense {
    fn index(&mut self, group: u32) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(group).or_insert(next)
    }
}

#[cfg(test)]
mod arm64_tests;
#[cfg(test)]
mod tests;

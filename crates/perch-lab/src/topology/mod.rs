// SPDX-License-Identifier: GPL-2.0-only
//! A machine as an x86-64 guest: the arguments that make QEMU's firmware describe it, the machine
//! that the guest's kernel will find, and in words what could not be kept.
//!
//! QEMU takes a regular grid of sockets, dies, modules, cores and threads. An LLC becomes a die
//! and a cluster becomes a module whose cores share an L2; NUMA nodes are sets of dies. Where the
//! machine is irregular the grid is as large as its largest part and the places that are too many
//! stay without a CPU, so that every machine of CPUs that are alike comes up in its own shape.

mod arguments;
mod tree;

use std::collections::HashMap;

use perch_machine::{Cpu, Machine};

use crate::error::{Error, Result};
use tree::{Branch, CLUSTER, CORE, Caps, LEVELS, THREAD};

/// CPUs of a guest when nobody asks for a number: it boots in four seconds without KVM, and is
/// enough for two packages of two nodes with two clusters each.
pub const DEFAULT_CPUS: usize = 16;

/// The highest APIC ID that a CPU can have without interrupt remapping; 255 means all CPUs.
const LAST_APIC_ID: u32 = 254;

/// How many of a machine's CPUs a guest gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cpus {
    /// Every one.
    All,
    /// No more than so many, at least 1.
    AtMost(usize),
}

/// Where a CPU sits in QEMU's grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Seat {
    socket: usize,
    die: usize,
    module: usize,
    core: usize,
    thread: usize,
}

/// QEMU's grid: how many of each there are in the next larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grid {
    sockets: usize,
    dies: usize,
    modules: usize,
    cores: usize,
    threads: usize,
}

/// A machine as a guest.
#[derive(Clone, Debug)]
pub struct Topology {
    machine: Machine,
    left_out: Vec<String>,
    grid: Grid,
    /// The seat of each CPU, in the order in which the guest's kernel numbers them.
    seats: Vec<Seat>,
}

impl Topology {
    /// The guest that shows `machine`, or as much of it as `cpus` allows.
    ///
    /// When CPUs have to go, the shape stays: each level keeps at least two groups as long as that
    /// is possible, and rather inner levels (threads, clusters) than outer ones.
    ///
    /// # Errors
    /// [`Error::Input`] when no x86-64 guest can look like that: CPUs of different capacity, an
    /// LLC that spans packages, more CPUs than interrupts can reach.
    pub fn new(machine: &Machine, cpus: Cpus) -> Result<Topology> {
        if machine.is_asymmetric() {
            return Err(Error::Input(format!(
                "{}: its CPUs differ in capacity, and the CPUs of an x86-64 guest are all alike; \
                 take a machine without [[capacity]], or simulate it (perch compare -m {0})",
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
        let numbers = tree.numbers();
        if numbers.windows(2).any(|pair| pair[0] > pair[1]) {
            left_out.push(format!(
                "the numbering of {}'s CPUs: the guest's are numbered core by core",
                machine.name
            ));
        }
        let (grid, seats) = seats(&tree);
        let topology = Topology {
            machine: found(machine, &numbers, &mut left_out),
            left_out,
            grid,
            seats,
        };
        topology.check_apic_ids(machine)?;
        Ok(topology)
    }

    /// The machine as the guest's kernel finds it: what `perch machine detect` says in there,
    /// except for costs, which are those of the machine that is modelled.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// What the guest lacks of the machine that was asked for, a sentence each.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Number of CPUs in the guest.
    pub fn cpus(&self) -> usize {
        self.seats.len()
    }

    /// Whether it takes a QEMU (10 or newer) that can group cores around an L2.
    pub fn has_clusters(&self) -> bool {
        self.machine.clusters() > 0
    }

    /// APIC IDs give each level of the grid its own bits.
    fn check_apic_ids(&self, asked: &Machine) -> Result<()> {
        let bits = |count: usize| count.next_power_of_two().trailing_zeros();
        let grid = &self.grid;
        let last = |seat: &Seat| {
            let levels = [
                (seat.die, grid.dies),
                (seat.module, grid.modules),
                (seat.core, grid.cores),
                (seat.thread, grid.threads),
            ];
            let id = |id: u64, (at, of): (usize, usize)| (id << bits(of)) | at as u64;
            levels.into_iter().fold(seat.socket as u64, id)
        };
        match self.seats.iter().map(last).max() {
            Some(id) if id > u64::from(LAST_APIC_ID) => Err(Error::Input(format!(
                "{}: {} CPUs in this shape reach APIC ID {id}, and a guest without interrupt \
                 remapping ends at {LAST_APIC_ID}; take fewer (--cpus 128)",
                asked.name,
                self.cpus()
            ))),
            _ => Ok(()),
        }
    }
}

/// What the guest shows of LLCs that firmware declares otherwise than the hardware has them.
fn phantoms(machine: &Machine) -> Result<Vec<String>> {
    let mut package_of = HashMap::new();
    for (number, cpu) in machine.cpus.iter().enumerate() {
        let package = *package_of.entry(cpu.declared_llc).or_insert(cpu.package);
        if package != cpu.package {
            return Err(Error::Input(format!(
                "{}: the LLC of CPU {number} is declared over two packages; an x86-64 guest's \
                 lies inside one",
                machine.name
            )));
        }
    }
    Ok(match machine.has_phantom_llcs() {
        true => vec![format!(
            "the {} LLCs of the hardware: the guest has the {} that {}'s firmware declares",
            machine.llcs(),
            machine.declared_llcs(),
            machine.name
        )],
        false => Vec::new(),
    })
}

/// In words, what the cut to `kept` took from the machine's `widest`.
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
    let levels = (0..LEVELS).filter(|&level| kept[level] < widest[level]);
    let parts: Vec<String> = levels
        .map(|level| {
            let (word, within) = match level {
                CORE if widest[CLUSTER] == 1 => ("cores", "an LLC"),
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

/// The grid that holds the tree, and the seat of each of its CPUs, depth first.
fn seats(tree: &Branch) -> (Grid, Vec<Seat>) {
    let mut grid = Grid {
        sockets: tree.parts.len(),
        dies: 1,
        modules: 1,
        cores: 1,
        threads: 1,
    };
    let mut seats = Vec::new();
    for (socket, package) in tree.parts.iter().enumerate() {
        let dies = package.parts.iter().flat_map(|node| &node.parts);
        for (die, llc) in dies.enumerate() {
            grid.dies = grid.dies.max(die + 1);
            grid.modules = grid.modules.max(llc.parts.len());
            for (module, cluster) in llc.parts.iter().enumerate() {
                grid.cores = grid.cores.max(cluster.parts.len());
                for (core, threads) in cluster.parts.iter().enumerate() {
                    grid.threads = grid.threads.max(threads.parts.len());
                    seats.extend((0..threads.parts.len()).map(|thread| Seat {
                        socket,
                        die,
                        module,
                        core,
                        thread,
                    }));
                }
            }
        }
    }
    (grid, seats)
}

impl Branch {
    /// The CPUs that are left, depth first.
    fn numbers(&self) -> Vec<u32> {
        let mut numbers = Vec::new();
        self.walk(0, &mut |cpu| numbers.push(cpu));
        numbers
    }

    fn walk(&self, level: usize, visit: &mut impl FnMut(u32)) {
        for part in &self.parts {
            match level {
                THREAD => visit(part.key),
                _ => part.walk(level + 1, visit),
            }
        }
    }
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
                capacity: 1024,
            }
        })
        .collect();
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
                // A SLIT in which another node is as near as the own one is thrown away whole.
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
    }
}

/// The cluster of each CPU of `numbers`, where it is larger than a core and smaller than its LLC:
/// the kernel knows no other.
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
mod tests;

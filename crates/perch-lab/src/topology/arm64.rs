// SPDX-License-Identifier: GPL-2.0-or-later
//! A machine as an arm64 guest: the device tree that describes it.
//!
//! QEMU's `virt` board writes a tree of its own, of CPUs that are alike. In that tree perch
//! replaces everything that tells a CPU's place by the machine's: `capacity-dmips-mhz`, `cpu-map`,
//! the caches and `numa-node-id`, as the kernel's Documentation/devicetree/bindings/{cpu,numa}.txt
//! and the Devicetree Specification describe them. Any machine can be described in this way with
//! its own numbers; only the model of CPU is the same for all.

use std::collections::BTreeMap;

use perch_machine::{Cpu, Machine};

use super::memory::{self, Memory};
use crate::fdt::{self, Damage, Node};

/// The model of CPU that QEMU emulates. It has two levels of caches of its own, to which a tree may
/// add. It has the atomic instructions of Armv8.1, without which the kernel refuses BPF programs
/// that use atomics on an arena. It has none of the instructions that are slow in emulation, such
/// as pointer authentication.
const MODEL: &str = "cortex-a76";

/// `-machine`, `-cpu`, `-smp`, `-m` and `-numa`, with this memory.
///
/// They switch off the random seeds that QEMU puts into the tree, which differ from boot to boot.
pub(super) fn arguments(machine: &Machine, memory: &Memory) -> Vec<String> {
    let cpus = machine.cpus.len();
    let words = [
        "-machine",
        "virt,gic-version=3,dtb-randomness=off",
        "-cpu",
        MODEL,
        "-smp",
        // Each CPU is in a socket of its own, else QEMU warns of sockets that nodes divide.
        &format!("{cpus},sockets={cpus},clusters=1,cores=1,threads=1"),
    ];
    let words = words.map(str::to_string).to_vec();
    [words, memory::arguments(machine, memory)].concat()
}

/// QEMU's device tree `blob` with the CPUs of `machine`.
///
/// # Errors
/// When this is not the tree of a `virt` board with so many CPUs, or when a cache is
/// larger than a tree can express.
pub(super) fn describe(machine: &Machine, blob: &[u8]) -> Result<Vec<u8>, Damage> {
    let mut tree = fdt::read(blob)?;
    let mut handles = Handles(tree.root.last_phandle());
    let cpus = tree.root.child("cpus").ok_or("it has no /cpus")?;
    cpus.children.retain(|child| child.name != "cpu-map");
    let mut nodes: Vec<&mut Node> = cpus.children.iter_mut().filter(|n| is_cpu(n)).collect();
    if nodes.len() != machine.cpus.len() {
        return Err(
            format!("it has {} CPUs and the machine {}", nodes.len(), machine.cpus.len()).into()
        );
    }
    // The kernel numbers CPUs in the tree's order.
    if !nodes.is_sorted_by_key(|node| node.cell("reg")) {
        return Err("its CPUs are not in the order of their numbers".into());
    }
    let mut caches = Caches::new(machine)?;
    let mut places = Vec::new();
    for (cpu, node) in machine.cpus.iter().zip(&mut nodes) {
        let handle = handles.of(node);
        places.push(handle);
        node.set_cell("capacity-dmips-mhz", cpu.capacity);
        if machine.nodes() > 1 {
            node.set_cell("numa-node-id", cpu.node);
        }
        caches.attach(cpu, node, &mut handles)?;
    }
    cpus.children.extend(caches.nodes);
    cpus.children.push(cpu_map(machine, &places));
    tree.write()
}

fn is_cpu(node: &Node) -> bool {
    node.get("device_type") == Some(b"cpu\0")
}

/// The phandles, numbers by which nodes refer to each other: the last one in use.
struct Handles(u32);

impl Handles {
    /// The node's phandle; a node without one gets the next.
    fn of(&mut self, node: &mut Node) -> u32 {
        if let Some(handle) = node.cell("phandle") {
            return handle;
        }
        self.0 += 1;
        node.set_cell("phandle", self.0);
        self.0
    }
}

/// The caches beyond a CPU's first level.
struct Caches {
    line: u32,
    l1d: u32,
    /// Bytes of one L2; `None` when the last level is the second.
    l2: Option<u32>,
    llc: u32,
    l2_per_cluster: bool,
    /// The phandles of the caches made so far, by the CPUs that share them.
    made: BTreeMap<Sharers, u32>,
    nodes: Vec<Node>,
}

/// The CPUs that share a cache.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sharers {
    Core(u32),
    Cluster(u32),
    Llc(u32),
}

impl Caches {
    fn new(machine: &Machine) -> Result<Caches, Damage> {
        let hardware = &machine.hardware;
        let cell = |bytes: u64| {
            u32::try_from(bytes)
                .map_err(|_| format!("a cache of {bytes} bytes is larger than it can say"))
        };
        Ok(Caches {
            line: hardware.line_bytes,
            l1d: cell(hardware.l1d_bytes)?,
            l2: match hardware.l2_bytes {
                0 => None,
                bytes => Some(cell(bytes)?),
            },
            llc: cell(hardware.llc_bytes)?,
            l2_per_cluster: hardware.l2_per_cluster,
            made: BTreeMap::new(),
            nodes: Vec::new(),
        })
    }

    /// Writes the caches of `cpu` into its node.
    fn attach(&mut self, cpu: &Cpu, node: &mut Node, handles: &mut Handles) -> Result<(), Damage> {
        // The machine file tells the data cache only; the kernel needs both kinds, or counts caches
        // wrongly.
        for kind in ["d", "i"] {
            node.set_cell(&format!("{kind}-cache-size"), self.l1d);
            node.set_cell(&format!("{kind}-cache-line-size"), self.line);
        }
        let llc = (Sharers::Llc(cpu.llc), self.llc);
        let l2_of = match cpu.cluster.filter(|_| self.l2_per_cluster) {
            Some(cluster) => Sharers::Cluster(cluster),
            None => Sharers::Core(cpu.core),
        };
        let path: Vec<(Sharers, u32)> = match self.l2 {
            Some(bytes) => vec![(l2_of, bytes), llc],
            None => vec![llc],
        };
        // The loop goes from memory inwards, because a cache refers to the next one outwards.
        let mut next = None;
        for (index, &(sharers, bytes)) in path.iter().enumerate().rev() {
            let level = index as u32 + 2;
            next = Some(match self.made.get(&sharers) {
                Some(&handle) => handle,
                None => self.make(sharers, level, bytes, next, handles),
            });
        }
        let nearest = next.ok_or("there is no cache beyond the first level")?;
        node.set_cell("next-level-cache", nearest);
        Ok(())
    }

    fn make(
        &mut self,
        sharers: Sharers,
        level: u32,
        bytes: u32,
        next: Option<u32>,
        handles: &mut Handles,
    ) -> u32 {
        let count = self.nodes.len();
        let mut node = Node::new(format!("l{level}-cache{count}"));
        node.set("compatible", b"cache\0");
        node.set_cell("cache-level", level);
        node.set("cache-unified", []);
        node.set_cell("cache-size", bytes);
        node.set_cell("cache-line-size", self.line);
        if let Some(next) = next {
            node.set_cell("next-level-cache", next);
        }
        let handle = handles.of(&mut node);
        self.nodes.push(node);
        self.made.insert(sharers, handle);
        handle
    }
}

/// `cpu-map`: sockets, clusters, cores and threads, each numbered from 0 in the next larger.
///
/// Every core has to be in a cluster there. A core outside all of the machine's clusters gets one
/// for itself. Where the machine has no clusters, each LLC becomes one, which the kernel does not
/// count as a level of its own.
fn cpu_map(machine: &Machine, handles: &[u32]) -> Node {
    let clustered = machine.clusters() > 0;
    let mut map = Node::new("cpu-map");
    let mut numbers: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
    for (cpu, &handle) in machine.cpus.iter().zip(handles) {
        let cluster = match cpu.cluster {
            Some(cluster) => [0, cluster],
            None if clustered => [1, cpu.core],
            None => [2, cpu.llc],
        };
        let socket = vec![cpu.package];
        let cluster = [&socket[..], &cluster].concat();
        let core = [&cluster[..], &[cpu.core]].concat();
        let mut at = &mut map;
        for (word, key) in [("socket", socket), ("cluster", cluster), ("core", core)] {
            let count = at.children.len();
            let index = *numbers.entry(key).or_insert(count);
            if index == count {
                at.children.push(Node::new(format!("{word}{index}")));
            }
            at = &mut at.children[index];
        }
        let siblings = machine.cpus.iter().filter(|other| other.core == cpu.core);
        match siblings.count() {
            1 => at.set_cell("cpu", handle),
            _ => {
                let mut thread = Node::new(format!("thread{}", at.children.len()));
                thread.set_cell("cpu", handle);
                at.children.push(thread);
            }
        }
    }
    map
}

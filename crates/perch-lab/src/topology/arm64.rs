// SPDX-License-Identifier: GPL-2.0-or-later
//! A machine as an arm64 guest: the device tree that describes it.
//!
//! QEMU's `virt` board writes a tree of its own, of CPUs that are alike. In that tree everything
//! that tells a CPU's place is replaced by the machine's: `capacity-dmips-mhz`, `cpu-map`, the
//! caches and `numa-node-id`, as the kernel's Documentation/devicetree/bindings/{cpu,numa}.txt and
//! the Devicetree Specification describe them. Any machine can be told that way, numbered as it
//! is; only the CPUs themselves remain all of one kind.

use std::collections::BTreeMap;

use perch_machine::{Cpu, Machine};

use super::memory::{self, Memory};
use crate::fdt::{self, Node};

/// The CPU that is emulated. It has two levels of caches of its own, to which a tree may add; the
/// atomic instructions of Armv8.1, without which the kernel refuses BPF programs that use them on
/// an arena; and none of those that are slow in emulation (pointer authentication, say).
const MODEL: &str = "cortex-a76";

/// `-machine`, `-cpu`, `-smp`, `-m` and `-numa`, with this memory.
///
/// Without randomness in the tree, which differs from boot to boot.
pub(super) fn arguments(machine: &Machine, memory: &Memory) -> Vec<String> {
    let cpus = machine.cpus.len();
    let words = [
        "-machine",
        "virt,gic-version=3,dtb-randomness=off",
        "-cpu",
        MODEL,
        "-smp",
        // Each in a socket of its own, or QEMU warns of sockets that nodes divide.
        &format!("{cpus},sockets={cpus},clusters=1,cores=1,threads=1"),
    ];
    let words = words.map(str::to_string).to_vec();
    [words, memory::arguments(machine, memory)].concat()
}

/// QEMU's device tree `blob` with the CPUs of `machine`.
///
/// # Errors
/// In words, when this is not the tree of a `virt` board with so many CPUs, or a cache is larger
/// than a tree can say.
pub(super) fn describe(machine: &Machine, blob: &[u8]) -> Result<Vec<u8>, String> {
    let mut tree = fdt::read(blob)?;
    let mut handles = Handles(tree.root.last_phandle());
    let cpus = tree.root.child("cpus").ok_or("it has no /cpus")?;
    cpus.children.retain(|child| child.name != "cpu-map");
    let mut nodes: Vec<&mut Node> = cpus.children.iter_mut().filter(|n| is_cpu(n)).collect();
    if nodes.len() != machine.cpus.len() {
        return Err(format!(
            "it has {} CPUs and the machine {}",
            nodes.len(),
            machine.cpus.len()
        ));
    }
    // The kernel numbers CPUs in the tree's order.
    if !nodes.is_sorted_by_key(|node| node.cell("reg")) {
        return Err("its CPUs are not in the order of their numbers".to_string());
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
    Ok(tree.write())
}

fn is_cpu(node: &Node) -> bool {
    node.get("device_type") == Some(b"cpu\0")
}

/// Numbers by which nodes refer to each other; the last one that is in use.
struct Handles(u32);

impl Handles {
    /// The node's, which it gets if it has none.
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
    /// Bytes of one; none when the last level is the second.
    l2: Option<u32>,
    llc: u32,
    l2_per_cluster: bool,
    /// The handles of those that there are so far, by who shares them.
    made: BTreeMap<Sharers, u32>,
    nodes: Vec<Node>,
}

/// Who shares a cache.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sharers {
    Core(u32),
    Cluster(u32),
    Llc(u32),
}

impl Caches {
    fn new(machine: &Machine) -> Result<Caches, String> {
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

    /// Says in `node`, which is `cpu`'s, what caches it has.
    fn attach(&mut self, cpu: &Cpu, node: &mut Node, handles: &mut Handles) -> Result<(), String> {
        // The machine knows of data only; the kernel wants to hear of both or counts wrongly.
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
        // From memory inwards, for a cache refers to the next one outwards.
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
/// Cores have to be in clusters there. One outside of all is alone in one, and where the machine
/// has none, an LLC is one: that is not a level of its own for the kernel.
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

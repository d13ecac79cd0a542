// SPDX-License-Identifier: GPL-2.0-or-later
//! The device trees of machines as arm64 guests; nothing is booted.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::fdt::{self, Node};
use perch_machine::resolve;

/// The parts that matter of the tree that QEMU writes for so many CPUs.
fn board(cpus: usize) -> fdt::Tree {
    let mut all = Node::new("cpus");
    for cpu in 0..cpus {
        let mut node = Node::new(format!("cpu@{cpu:x}"));
        node.set("device_type", b"cpu\0");
        // The interrupt controller has groups of sixteen CPUs.
        node.set_cell("reg", (cpu / 16 * 256 + cpu % 16) as u32);
        node.set_cell("phandle", 0x8000 + cpu as u32);
        node.set_cell("numa-node-id", 9);
        all.children.push(node);
    }
    all.children.push(Node::new("cpu-map"));
    let mut root = Node::new("");
    root.children.extend([Node::new("chosen"), all]);
    // The crate makes a tree only by reading a blob.
    let mut blob = fdt::read(&fdt::empty()).unwrap();
    blob.root = root;
    blob
}

fn described(topology: &Topology) -> Node {
    let blob = topology.device_tree(&board(topology.cpus()).write().unwrap()).unwrap();
    let mut root = fdt::read(&blob).unwrap().root;
    assert!(root.child("chosen").is_some());
    root.child("cpus").unwrap().clone()
}

fn cpus(tree: &Node) -> Vec<&Node> {
    let cpus = tree.children.iter();
    cpus.filter(|node| node.get("device_type").is_some()).collect()
}

/// A CPU's outermost cache: its phandle, its level and its size.
fn last_level(tree: &Node, cpu: &Node) -> (u32, u32, u32) {
    let mut at = cpu;
    let mut handle = 0;
    while let Some(next) = at.cell("next-level-cache") {
        let mut caches = tree.children.iter();
        at = caches.find(|node| node.cell("phandle") == Some(next)).unwrap();
        handle = next;
    }
    (handle, at.cell("cache-level").unwrap(), at.cell("cache-size").unwrap())
}

/// The path of each CPU in `cpu-map`, by its handle.
fn places(map: &Node, path: &str, found: &mut BTreeMap<u32, String>) {
    if let Some(cpu) = map.cell("cpu") {
        assert!(found.insert(cpu, path.to_string()).is_none());
        assert!(map.children.is_empty());
    }
    for (index, child) in map.children.iter().enumerate() {
        let number = child.name.trim_start_matches(|c: char| c.is_ascii_lowercase());
        assert_eq!(number, index.to_string(), "{}", child.name);
        places(child, &format!("{path}/{}", child.name), found);
    }
}

fn map(tree: &Node) -> BTreeMap<u32, String> {
    let mut found = BTreeMap::new();
    let maps = tree.children.iter().filter(|node| node.name == "cpu-map");
    let maps: Vec<&Node> = maps.collect();
    assert_eq!(maps.len(), 1, "QEMU's own is gone");
    places(maps[0], "", &mut found);
    found
}

#[test]
fn juno_has_its_numbers_capacities_and_caches() {
    let topology = Topology::new(&resolve("juno").unwrap(), Cpus::AtMost(16)).unwrap();
    assert_eq!(topology.arch(), Arch::Aarch64);
    assert!(topology.left_out().is_empty());
    let tree = described(&topology);
    let cpus = cpus(&tree);
    let cell = |name| cpus.iter().map(|cpu| cpu.cell(name)).collect::<Vec<_>>();
    let capacities = [446, 1024, 1024, 446, 446, 446].map(Some);
    assert_eq!(cell("capacity-dmips-mhz"), capacities);
    // There is one node, so the tree does not name it.
    assert_eq!(cell("numa-node-id"), [Some(9); 6]);
    let caches: Vec<_> = cpus.iter().map(|cpu| last_level(&tree, cpu)).collect();
    assert_eq!((caches[0].1, caches[0].2), (2, 1 << 20));
    assert!(caches[0] == caches[3] && caches[1] == caches[2] && caches[0] != caches[1]);
    let places: Vec<String> = map(&tree).into_values().collect();
    let core = |cluster, core| format!("/socket0/cluster{cluster}/core{core}");
    let expected = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (0, 3)];
    assert_eq!(places, expected.map(|(c, n)| core(c, n)));
}

#[test]
fn pixel3_shares_an_l3_behind_l2s_of_their_own() {
    let topology = Topology::new(&resolve("pixel3").unwrap(), Cpus::All).unwrap();
    let tree = described(&topology);
    let caches: BTreeSet<_> = cpus(&tree).iter().map(|cpu| last_level(&tree, cpu)).collect();
    assert_eq!(caches.len(), 1);
    let (_, level, bytes) = caches.into_iter().next().unwrap();
    assert_eq!((level, bytes), (3, 2 << 20));
    let l2s: BTreeSet<_> = cpus(&tree).iter().map(|cpu| cpu.cell("next-level-cache")).collect();
    assert_eq!(l2s.len(), 8);

    let phantom = Topology::new(&resolve("pixel3-phantom").unwrap(), Cpus::All).unwrap();
    let tree = described(&phantom);
    let caches: BTreeSet<_> = cpus(&tree).iter().map(|cpu| last_level(&tree, cpu)).collect();
    assert_eq!(caches.len(), 2);
    let words = phantom.left_out().join("\n");
    assert!(
        words.contains("the guest has the 2 that pixel3-phantom's firmware declares"),
        "{words}"
    );
}

/// A cut to few CPUs keeps some of each kind.
#[test]
fn a_cut_keeps_every_kind() {
    let text = "name = \"three\"\n[[llc]]\ncpus = \"0-7\"\n[[capacity]]\ncpus = \"0-3\"\nvalue = 300\n\
                [[capacity]]\ncpus = \"4-6\"\nvalue = 800\n";
    let three = Machine::from_toml_str(text, "test").unwrap();
    let capacities = |limit| {
        let topology = Topology::new(&three, Cpus::AtMost(limit)).unwrap();
        let machine = topology.machine();
        let capacities: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.capacity).collect();
        (capacities, topology.left_out().to_vec())
    };
    assert_eq!(capacities(8), (vec![300, 300, 300, 300, 800, 800, 800, 1024], vec![]));
    let (kept, words) = capacities(6);
    assert_eq!(kept, [300, 300, 800, 800, 1024]);
    assert_eq!(words, ["3 of three's 8 CPUs: the guest has 5 (2 of 4 cores in a kind)"]);
    assert_eq!(capacities(3).0, [300, 800, 1024]);
    let too_few = Topology::new(&three, Cpus::AtMost(2)).unwrap_err().to_string();
    assert!(too_few.contains("leave none of capacity 1024"), "{too_few}");
    assert!(too_few.contains("at least 3"), "{too_few}");
}

#[test]
fn a_tree_of_another_board_is_refused() {
    let topology = Topology::new(&resolve("juno").unwrap(), Cpus::All).unwrap();
    let refused = |blob: &[u8]| topology.device_tree(blob).unwrap_err().to_string();
    assert!(refused(&board(8).write().unwrap()).contains("8 CPUs and the machine 6"));
    assert!(refused(b"no tree at all, but long enough for one").contains("magic"));
    let mut turned = board(6);
    turned.root.child("cpus").unwrap().children[..6].reverse();
    assert!(refused(&turned.write().unwrap()).contains("order"));
    let mut none = board(6);
    none.root.children.pop();
    assert!(refused(&none.write().unwrap()).contains("/cpus"));
}

/// The tree of any machine tells its capacities, clusters, threads and nodes.
#[test]
fn any_machine_is_told_by_its_tree() {
    let (mut told, mut refused) = (0, 0);
    for seed in 0..100 {
        let asked = Machine::random(seed, 40);
        let Ok(topology) = Topology::of(Arch::Aarch64, &asked, Cpus::All) else {
            refused += 1;
            continue;
        };
        told += 1;
        let machine = topology.machine();
        assert_eq!(machine.cpus.len(), asked.cpus.len(), "seed {seed}");
        let tree = described(&topology);
        let cpus = cpus(&tree);
        let places: Vec<String> = map(&tree).into_values().collect();
        let places: Vec<Vec<&str>> =
            places.iter().map(|place| place.split('/').collect()).collect();
        let caches: Vec<_> = cpus.iter().map(|node| last_level(&tree, node)).collect();
        for (a, (cpu, node)) in machine.cpus.iter().zip(&cpus).enumerate() {
            assert_eq!(node.cell("capacity-dmips-mhz"), Some(asked.cpus[a].capacity));
            if machine.nodes() > 1 {
                assert_eq!(node.cell("numa-node-id"), Some(cpu.node), "seed {seed}");
            }
            for (b, other) in machine.cpus.iter().enumerate() {
                let same = |parts: usize| {
                    let part = |place: usize| places[place].iter().take(parts + 1);
                    part(a).eq(part(b))
                };
                assert_eq!(same(1), cpu.package == other.package, "seed {seed}");
                assert_eq!(same(3), cpu.core == other.core, "seed {seed}");
                let shared = caches[a] == caches[b];
                assert_eq!(shared, cpu.llc == other.llc, "seed {seed}: {a} {b}");
                if cpu.cluster.is_some() {
                    assert_eq!(same(2), cpu.cluster == other.cluster, "seed {seed}: {a} {b}");
                }
                // The kernel would take a cluster larger than an LLC for the LLC.
                assert!(!same(2) || shared, "seed {seed}: {a} {b}");
            }
        }
    }
    assert!(told > 80, "{told} of 100, {refused} refused");
}

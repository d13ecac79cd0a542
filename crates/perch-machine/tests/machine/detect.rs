// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of machines from sysfs trees: real oddities, and every topology that can be written as a
//! tree.

use crate::common::{Tree, surveyed};
use perch_machine::{Host, Machine, cpulist, detect, library};
use proptest::prelude::*;
use std::path::Path;

/// Returns a tree with two CPUs and nothing else, as the barest virtual machine shows.
fn bare() -> Tree {
    let tree = Tree::new();
    tree.write("cpu/online", "0-1");
    tree.write("cpu/cpu0/topology/core_id", 0);
    tree.write("cpu/cpu1/topology/core_id", 1);
    tree
}

#[test]
fn this_host_can_be_detected() {
    let host = Host::detect(Path::new("/")).unwrap();
    assert!(!host.machine.cpus.is_empty());
    assert_eq!(host.machine.cpus.len(), host.numbers.len());
}

#[test]
fn library_machines_are_detected_from_their_trees() {
    for name in ["kunpeng920", "juno", "pixel3", "x5570"] {
        let machine = library::load(name).unwrap();
        let tree = Tree::of(&machine);
        let found = detect(tree.root()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(found.cpus, machine.cpus, "{name}");
        assert_eq!(found.node_distance, machine.node_distance, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn random_machines_are_detected_from_their_trees(seed: u64, max_cpus in 1..24usize) {
        let machine = Machine::random(seed, max_cpus);
        let found = detect(Tree::of(&machine).root()).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let expected = surveyed(&machine);
        prop_assert_eq!(found.cpus, expected.cpus);
        prop_assert_eq!(found.node_distance, expected.node_distance);
    }
}

#[test]
fn a_virtual_machine_without_caches_or_nodes_has_one_llc() {
    let machine = detect(bare().root()).unwrap();
    assert_eq!((machine.cores(), machine.llcs(), machine.nodes()), (2, 1, 1));
    assert_eq!(machine.clusters(), 0);
    assert!(!machine.is_asymmetric());
}

#[test]
fn cluster_id_65535_means_no_cluster() {
    let tree = Tree::of(&Machine::regular("vm", 1, 1, 1, 2, 2, 1).unwrap());
    assert_eq!(detect(tree.root()).unwrap().clusters(), 2);
    tree.cpus(0..4, "topology/cluster_id", |_| 65535);
    assert_eq!(detect(tree.root()).unwrap().clusters(), 0);
}

#[test]
fn threads_switched_off_at_the_end_are_left_out() {
    let tree = bare();
    tree.write("cpu/present", "0-3");
    let machine = detect(tree.root()).unwrap();
    assert_eq!(machine.cpus.len(), 2);
    assert!(machine.description.contains("CPUs 2-3 were offline"), "{}", machine.description);
}

/// Takes CPUs offline, as the kernel shows it: their folders stay, without topology and caches.
fn take_offline(tree: &Tree, cpus: &[u32], of: usize) {
    let online: Vec<u32> = (0..of as u32).filter(|cpu| !cpus.contains(cpu)).collect();
    tree.write("cpu/online", cpulist::format(&online));
    tree.write("cpu/present", format!("0-{}", of - 1));
    for cpu in cpus {
        tree.remove(&format!("cpu/cpu{cpu}/topology"));
        tree.remove(&format!("cpu/cpu{cpu}/cache"));
        tree.write(&format!("cpu/cpu{cpu}/online"), 0);
    }
}

#[test]
fn an_offline_cpu_in_the_middle_leaves_the_others_their_places() {
    // Two LLCs of two clusters of two cores with two threads.
    let whole = Machine::regular("smt", 1, 1, 2, 2, 2, 2).unwrap();
    let tree = Tree::of(&whole);
    take_offline(&tree, &[3], 16);
    let host = Host::detect(tree.root()).unwrap();
    assert_eq!(host.offline, [3]);
    assert_eq!(host.numbers[2..5], [2, 4, 5]);
    let machine = &host.machine;
    assert_eq!(machine.cpus.len(), 15);
    assert_eq!((machine.cores(), machine.clusters(), machine.llcs()), (8, 4, 2));
    // The kernel's CPU 2 has lost its sibling; 4 and 5 are still one core.
    assert_ne!(machine.cpus[1].core, machine.cpus[2].core);
    assert_eq!(machine.cpus[3].core, machine.cpus[4].core);
    assert_eq!(machine.cpus, whole.part(&host.numbers).cpus);
    let said = &machine.description;
    assert!(
        said.contains("CPUs 3 were offline and are left out, and the others, the kernel's 0-2,4-15, are numbered from 0 up"),
        "{said}"
    );
    assert_eq!(machine.sources[1], "CPUs 0-14 are the kernel's 0-2,4-15, in this order");
    let again = Machine::from_toml_str(&machine.to_toml(), "again").unwrap();
    assert_eq!(again, *machine);
}

#[test]
fn siblings_in_between_that_are_switched_off_leave_one_thread_a_core() {
    let tree = Tree::of(&Machine::regular("smt", 1, 1, 2, 0, 4, 2).unwrap());
    take_offline(&tree, &[1, 3, 5, 7, 9, 11, 13, 15], 16);
    tree.write("cpu/smt/control", "off");
    let host = Host::detect(tree.root()).unwrap();
    assert_eq!(host.numbers, [0, 2, 4, 6, 8, 10, 12, 14]);
    let machine = host.machine;
    assert!(!machine.has_smt());
    assert_eq!((machine.cores(), machine.llcs()), (8, 2));
    assert!(
        machine.description.contains("offline (SMT is switched off)"),
        "{}",
        machine.description
    );
}

#[test]
fn who_needs_the_kernels_numbers_is_told_of_the_hole() {
    let tree = bare();
    assert!(Host::detect(tree.root()).unwrap().with_kernel_numbers().is_ok());
    tree.write("cpu/present", "0-5");
    assert!(Host::detect(tree.root()).unwrap().with_kernel_numbers().is_ok());
    tree.write("cpu/online", "0,2-3");
    let host = Host::detect(tree.root()).unwrap();
    let message = host.with_kernel_numbers().unwrap_err().to_string();
    assert!(message.contains("sys/devices/system/cpu/online"), "{message}");
    assert!(message.contains("CPU 1 is not online, yet 3 is"), "{message}");
    assert!(message.contains("echo 1 > /sys/devices/system/cpu/cpu1/online"), "{message}");
}

#[test]
fn the_most_capable_cpus_may_be_offline() {
    let tree = bare();
    tree.write("cpu/online", "1-2");
    tree.write("cpu/present", "0-2");
    tree.write("cpu/cpu0/cpu_capacity", 1024);
    tree.write("cpu/cpu1/cpu_capacity", 512);
    tree.write("cpu/cpu2/cpu_capacity", 256);
    let machine = detect(tree.root()).unwrap();
    let capacities: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.capacity).collect();
    assert_eq!(capacities, [1024, 512]);
    assert!(machine.sources[2].contains("here has 512 of 1024"), "{:?}", machine.sources);
}

#[test]
fn what_contradicts_itself_beside_a_hole_is_told_with_the_kernels_numbers() {
    let tree = Tree::of(&Machine::regular("smt", 1, 1, 1, 0, 3, 2).unwrap());
    take_offline(&tree, &[1], 6);
    tree.write("cpu/cpu5/topology/core_cpus_list", "3,5");
    tree.refused(&["is in two cores", "CPUs 0-4 are the kernel's 0,2-5"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Whichever CPUs are offline, the others are where they were.
    #[test]
    fn random_machines_with_holes_are_parts_of_them(seed: u64, max_cpus in 1..24usize, gone: u32) {
        let whole = Machine::random(seed, max_cpus);
        let cpus = whole.cpus.len();
        let gone: Vec<u32> = (0..cpus as u32).filter(|cpu| gone >> cpu & 1 != 0).collect();
        prop_assume!(gone.len() < cpus);
        let tree = Tree::of(&whole);
        take_offline(&tree, &gone, cpus);
        let host = Host::detect(tree.root()).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(&host.offline, &gone);
        let expected = surveyed(&whole.part(&host.numbers));
        let places = |machine: &Machine| -> Vec<_> {
            let of = |cpu: &perch_machine::Cpu| {
                (cpu.core, cpu.cluster, cpu.llc, cpu.declared_llc, cpu.node, cpu.package)
            };
            machine.cpus.iter().map(of).collect()
        };
        prop_assert_eq!(places(&host.machine), places(&expected));
        prop_assert_eq!(host.machine.node_distance, expected.node_distance);
    }
}

#[test]
fn a_directory_that_is_no_tree_is_refused() {
    Tree::new().refused(&["expected the root of a tree"]);
}

#[test]
fn files_that_contradict_each_other_are_named() {
    let tree = Tree::of(&Machine::regular("smt", 1, 1, 1, 0, 2, 2).unwrap());
    tree.write("cpu/cpu3/topology/core_cpus_list", "1,3");
    tree.refused(&["is in two cores", "topology/core_cpus_list"]);

    tree.write("cpu/cpu3/topology/core_cpus_list", "0-1");
    tree.refused(&["CPU 3 is not in its own list"]);

    tree.write("cpu/cpu3/topology/core_cpus_list", "zero");
    tree.refused(&["`zero` in `zero` is not a number"]);
}

#[test]
fn a_node_without_cpus_is_left_out_and_said() {
    let tree = bare();
    tree.write("node/node0/cpulist", "0");
    tree.write("node/node0/distance", "10 17 28");
    // The node has only memory: CXL, or HBM.
    tree.write("node/node1/cpulist", "");
    tree.write("node/node1/distance", "17 10 28");
    tree.write("node/node4/cpulist", "1");
    tree.write("node/node4/distance", "28 28 10");
    let machine = detect(tree.root()).unwrap();
    assert_eq!(machine.node_distance, [[10, 28], [28, 10]]);
    assert_eq!(machine.sources[1], "nodes without CPUs are left out: 1");

    tree.write("node/node4/distance", "28 10");
    tree.refused(&["node4/distance", "expected 3 numbers"]);
}

#[test]
fn an_l3_cut_by_nodes_is_declared_in_parts() {
    let mut machine = Machine::regular("snc", 1, 2, 1, 0, 4, 1).unwrap();
    machine.cpus.iter_mut().for_each(|cpu| cpu.llc = 0);
    let found = detect(Tree::of(&machine).root()).unwrap();
    assert_eq!((found.llcs(), found.declared_llcs()), (1, 2));
}

#[test]
fn costs_come_from_the_most_capable_cpu() {
    let tree = bare();
    tree.write("cpu/cpu0/cpu_capacity", 400);
    tree.write("cpu/cpu1/cpu_capacity", 1024);
    tree.write("cpu/cpufreq/policy1/cpuinfo_max_freq", 2_803_200);
    for (state, name, latency, disable) in
        [(0, "POLL", 0, 0), (1, "C1", 2, 0), (2, "C6", 133, 0), (3, "C8", 400, 1)]
    {
        let file = |file: &str| format!("cpu/cpu1/cpuidle/state{state}/{file}");
        tree.write(&file("name"), name);
        tree.write(&file("latency"), latency);
        tree.write(&file("residency"), 3 * latency);
        tree.write(&file("disable"), disable);
    }
    tree.write("cpu/cpu1/cache/index2/type", "Unified");
    tree.write("cpu/cpu1/cache/index2/level", 2);
    tree.write("cpu/cpu1/cache/index2/size", "256K");
    tree.write("cpu/cpu1/cache/index2/shared_cpu_list", "0-1");
    // CPU 0 shows no cache, and CPU 1 says that they share one.
    assert_eq!(detect(tree.root()).unwrap().llcs(), 1);

    tree.write("cpu/cpu1/cache/index2/shared_cpu_list", "1");
    let hardware = detect(tree.root()).unwrap().hardware;
    assert_eq!(hardware.frequency_mhz, 2803);
    assert_eq!((hardware.l2_bytes, hardware.llc_bytes), (0, 256 << 10));
    let states: Vec<_> =
        hardware.idle_states.iter().map(|s| (s.name.as_str(), s.exit_ns)).collect();
    assert_eq!(states, [("C1", 2000), ("C6", 133_000)]);
}

#[test]
fn a_tree_without_its_optional_files_still_works() {
    let machine = Machine::regular("plain", 2, 1, 1, 2, 2, 2).unwrap();
    let tree = Tree::of(&machine);
    for cpu in 0..machine.cpus.len() {
        tree.remove(&format!("cpu/cpu{cpu}/cpu_capacity"));
        tree.remove(&format!("cpu/cpu{cpu}/cache/index2"));
        tree.remove(&format!("cpu/cpu{cpu}/topology/cluster_id"));
    }
    tree.remove("cpu/present");
    tree.remove("node/node0/distance");
    let found = detect(tree.root()).unwrap();
    assert_eq!(found.cpus, machine.cpus);
}

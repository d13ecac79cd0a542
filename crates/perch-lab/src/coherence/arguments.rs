// SPDX-License-Identifier: GPL-2.0-or-later
//! The guest's shape and its hardware's costs in the plugin's words (`plugin/machine.c` reads them).

use std::collections::HashMap;

use perch_machine::{Cpu, Distance, Machine};

/// Above so much memory a guest has a hole below 4 GiB, and the rest lies behind it.
const BELOW_THE_HOLE: u64 = 2 << 30;
const HOLE_ENDS: u64 = 4 << 30;

/// A CPU may be ahead of the slowest one by so much, in nanoseconds. Pinned pipes took the same time
/// within 1.3 % with windows of 100, 500 and 2000 ns.
const WINDOW_NS: u64 = 500;

/// The time of a spinning CPU's `pause`, in nanoseconds: between the 10 cycles of Intel's cores until
/// 2015 and the 140 of those after it (Agner Fog, "Instruction tables").
const PAUSE_NS: u64 = 20;

/// Numbers with colons between them.
fn list(numbers: impl IntoIterator<Item = u64>) -> String {
    let words: Vec<String> = numbers.into_iter().map(|n| n.to_string()).collect();
    words.join(":")
}

/// The number of each CPU's group, counted from 0 in the order in which the groups come.
fn groups<K: Eq + std::hash::Hash>(machine: &Machine, group: impl Fn(&Cpu) -> K) -> String {
    let mut numbers = HashMap::new();
    list(machine.cpus.iter().map(|cpu| {
        let next = numbers.len() as u64;
        *numbers.entry(group(cpu)).or_insert(next)
    }))
}

/// The shape of a guest that shows `machine` and has `memory_mib` MiB.
pub(super) fn shape(machine: &Machine, memory_mib: u64) -> Vec<String> {
    let cpus = machine.cpus.len();
    let hardware = &machine.hardware;
    let pairs = (0..cpus).flat_map(|a| (0..cpus).map(move |b| (a, b)));
    let distances: String =
        pairs.map(|(a, b)| char::from(b'0' + machine.distance(a, b) as u8)).collect();
    let nodes = machine.nodes() as u64;
    let node_bytes = (memory_mib / nodes) << 20;
    let bytes = node_bytes * nodes;
    let (below, top) = if bytes > BELOW_THE_HOLE {
        (BELOW_THE_HOLE, bytes - BELOW_THE_HOLE + HOLE_ENDS)
    } else {
        (bytes, bytes)
    };
    // A machine without an L2 has its L1 alone, and one L2 may serve a whole cluster.
    let (private_bytes, per_cluster) = match hardware.l2_bytes {
        0 => (hardware.l1d_bytes, false),
        bytes => (bytes, hardware.l2_per_cluster),
    };
    let private = |cpu: &Cpu| match cpu.cluster.filter(|_| per_cluster) {
        Some(cluster) => ("cluster", cluster),
        None => ("core", cpu.core),
    };
    vec![
        format!("cpus={cpus}"),
        format!("memory={top}"),
        format!("node_memory={node_bytes}"),
        format!("below_hole={below}"),
        format!("distance={distances}"),
        format!("private={}", groups(machine, private)),
        format!("llc={}", groups(machine, |cpu| cpu.llc)),
        // Memory is laid out by the node's number, not by its first CPU.
        format!("node={}", list(machine.cpus.iter().map(|cpu| cpu.node.into()))),
        format!("core={}", groups(machine, |cpu| cpu.core)),
        format!("private_bytes={private_bytes}"),
        format!("llc_bytes={}", hardware.llc_bytes),
    ]
}

/// The hardware's costs, in picoseconds where they are times.
pub(super) fn costs(machine: &Machine) -> Vec<String> {
    let hardware = &machine.hardware;
    let core = &hardware.core;
    let ps = |ns: u32| u64::from(ns) * 1000;
    let instruction = 100_000_000
        / (u64::from(hardware.frequency_mhz) * u64::from(core.instructions_per_100_cycles));
    let by_distance = |of: &perch_machine::ByDistance| {
        list(Distance::ALL.iter().map(|distance| ps(of.at(*distance))))
    };
    let (local, remote) = hardware.memory_ns;
    let line = hardware.contended_line.unwrap_or_default();
    let states = hardware.idle_states.iter();
    let states = states.flat_map(|state| [ps(state.exit_ns), ps(state.residency_ns)]);
    vec![
        format!("instruction={}", instruction.max(1)),
        format!("atomic={}", ps(line.atomic_ns)),
        format!("pause={}", PAUSE_NS * 1000),
        format!("transfer={}", by_distance(&hardware.transfer_ns)),
        format!("ipi={}", by_distance(&hardware.ipi_ns)),
        format!("llc_hit={}", ps(hardware.llc_hit_ns)),
        format!("memory_cost={}", list([ps(local), ps(remote)])),
        format!("hold={}", ps(line.hold_ns)),
        format!("window={}", WINDOW_NS * 1000),
        format!("smt={}", hardware.smt_throughput_1024),
        format!("misses={}", core.misses_at_once),
        format!("reorder={}", core.reorder_instructions),
        format!("stores={}", core.store_buffer),
        format!("idle={}", list(states)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word<'w>(words: &'w [String], name: &str) -> &'w str {
        let found = words.iter().find_map(|word| {
            let (key, value) = word.split_once('=')?;
            (key == name).then_some(value)
        });
        found.unwrap_or_else(|| panic!("no {name}"))
    }

    #[test]
    fn the_plugin_is_told_the_guests_shape() {
        let machine = perch_machine::resolve("juno").unwrap();
        let words = shape(&machine, 512);
        assert_eq!(word(&words, "cpus"), "6");
        assert_eq!(word(&words, "memory"), "536870912");
        let distances = word(&words, "distance");
        assert_eq!(distances.len(), 36);
        assert_eq!(distances[..6].matches('0').count(), 1);
        let large = shape(&machine, 4096);
        assert_eq!(word(&large, "memory"), (6u64 << 30).to_string());
        assert_eq!(word(&large, "below_hole"), (2u64 << 30).to_string());
    }

    #[test]
    fn a_cluster_that_shares_its_l2_is_one_cache() {
        let machine = perch_machine::resolve("jacobsville").unwrap();
        let words = shape(&machine, 512);
        assert!(word(&words, "private").starts_with("0:0:0:0:1:1:1:1"));
        let machine = perch_machine::resolve("xeon240").unwrap();
        let words = shape(&machine, 512);
        let private: Vec<&str> = word(&words, "private").split(':').collect();
        let threads = machine.cpus.iter().filter(|cpu| cpu.core == 0).count();
        assert_eq!(private.iter().filter(|core| **core == "0").count(), threads);
    }

    #[test]
    fn the_plugin_is_told_what_the_machine_costs() {
        let machine = perch_machine::resolve("kunpeng920").unwrap();
        let words = costs(&machine);
        assert_eq!(word(&words, "instruction"), "384");
        assert_eq!(word(&words, "transfer"), "4000:10000:25000:55000:100000:72000:150000");
        assert_eq!(word(&words, "idle"), "150000:0");
        assert_eq!(word(&words, "memory_cost"), "117000:200000");
    }
}

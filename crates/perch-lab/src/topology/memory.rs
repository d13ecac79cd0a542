// SPDX-License-Identifier: GPL-2.0-or-later
//! The memory of a guest in QEMU's words, which are the same for both architectures.

use perch_machine::Machine;

/// `-m` and, where there are several nodes, the memory of each and the distances between them.
pub(super) fn arguments(machine: &Machine, memory_mib: u64) -> Vec<String> {
    let nodes = machine.nodes() as u64;
    let node_mib = memory_mib / nodes;
    let mut arguments = vec!["-m".to_string(), format!("{}M", node_mib * nodes)];
    if nodes == 1 {
        return arguments;
    }
    let mut add = |option: &str, value: String| arguments.extend([option.to_string(), value]);
    for node in 0..nodes {
        let name = format!("ram{node}");
        let size = format!("memory-backend-ram,id={name},size={node_mib}M");
        add("-object", size);
        add("-numa", format!("node,nodeid={node},memdev={name}"));
    }
    for (src, row) in machine.node_distance.iter().enumerate() {
        for (dst, val) in row.iter().enumerate() {
            add("-numa", format!("dist,src={src},dst={dst},val={val}"));
        }
    }
    arguments
}

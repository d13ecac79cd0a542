// SPDX-License-Identifier: GPL-2.0-or-later
//! The memory of a guest in QEMU's words, which are the same for both architectures.

use perch_machine::Machine;

/// The memory that QEMU gives a guest.
pub(crate) struct Memory {
    /// MiB in all.
    pub mib: u64,
    /// The paths of the files that hold it, one for each node. Without any, QEMU allocates it.
    pub files: Vec<String>,
    /// True when the guest writes into the files; else its pages become its own when it writes.
    pub shared: bool,
}

impl Memory {
    /// So many MiB, which QEMU allocates.
    pub fn own(mib: u64) -> Memory {
        Memory { mib, files: Vec::new(), shared: false }
    }

    /// The MiB of each of a machine's nodes, which are alike.
    pub fn node_mib(&self, machine: &Machine) -> u64 {
        self.mib / machine.nodes() as u64
    }

    /// QEMU's object for a node's part.
    fn object(&self, node: usize, mib: u64) -> String {
        match self.files.get(node) {
            None => format!("memory-backend-ram,id=ram{node},size={mib}M"),
            Some(path) => {
                let share = if self.shared { "on" } else { "off" };
                format!(
                    "memory-backend-file,id=ram{node},size={mib}M,mem-path={path},share={share}"
                )
            }
        }
    }
}

/// `-m` and, where there are several nodes, the memory of each and the distances between them.
pub(super) fn arguments(machine: &Machine, memory: &Memory) -> Vec<String> {
    let nodes = machine.nodes();
    let node_mib = memory.node_mib(machine);
    let mut arguments = vec!["-m".to_string(), format!("{}M", node_mib * nodes as u64)];
    let mut add = |option: &str, value: String| arguments.extend([option.to_string(), value]);
    if nodes == 1 {
        if !memory.files.is_empty() {
            add("-object", memory.object(0, node_mib));
            add("-machine", "memory-backend=ram0".to_string());
        }
        return arguments;
    }
    for node in 0..nodes {
        add("-object", memory.object(node, node_mib));
        add("-numa", format!("node,nodeid={node},memdev=ram{node}"));
    }
    for (src, row) in machine.node_distance.iter().enumerate() {
        for (dst, val) in row.iter().enumerate() {
            add("-numa", format!("dist,src={src},dst={dst},val={val}"));
        }
    }
    arguments
}

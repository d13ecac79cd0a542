// SPDX-License-Identifier: GPL-2.0-only
//! The topology in QEMU's words.

use std::collections::BTreeSet;

use super::{Seat, Topology};

impl Topology {
    /// `-machine`, `-cpu`, `-smp`, `-m` and `-numa`, for `memory_mib` MiB in all, at least 64 a
    /// node; `features` are more CPU flags, each with its sign.
    pub(crate) fn arguments(&self, memory_mib: u64, features: &[&str]) -> Vec<String> {
        let mut arguments = Vec::new();
        let mut add = |option: &str, value: String| {
            arguments.push(option.to_string());
            arguments.push(value);
        };
        add("-machine", self.board());
        // Leaf 0x1f, the only one that tells modules and dies, is read on Intel's CPUs and when
        // the highest basic leaf lies beyond it.
        let mut cpu = "max,vendor=GenuineIntel,level=0x20".to_string();
        for feature in features {
            cpu = format!("{cpu},{feature}");
        }
        add("-cpu", cpu);
        add("-smp", self.smp());
        for seat in self.latecomers() {
            add("-device", self.device(seat));
        }

        let nodes = self.machine.nodes() as u64;
        let node_mib = memory_mib / nodes;
        add("-m", format!("{}M", node_mib * nodes));
        if nodes > 1 {
            for node in 0..nodes {
                let name = format!("ram{node}");
                let size = format!("memory-backend-ram,id={name},size={node_mib}M");
                add("-object", size);
                add("-numa", format!("node,nodeid={node},memdev={name}"));
            }
            for home in self.homes() {
                add("-numa", home);
            }
            for (src, row) in self.machine.node_distance.iter().enumerate() {
                for (dst, val) in row.iter().enumerate() {
                    add("-numa", format!("dist,src={src},dst={dst},val={val}"));
                }
            }
        }
        arguments
    }

    /// The board, and which level shares which cache.
    fn board(&self) -> String {
        match self.has_clusters() {
            false => "q35".to_string(),
            true => "q35,smp-cache.0.cache=l2,smp-cache.0.topology=module,\
                     smp-cache.1.cache=l3,smp-cache.1.topology=die"
                .to_string(),
        }
    }

    fn smp(&self) -> String {
        let grid = &self.grid;
        let seats = grid.sockets * grid.dies * grid.modules * grid.cores * grid.threads;
        let mut smp = match self.is_regular() {
            true => format!("{seats}"),
            // The first seat is always taken; the others get their CPU one by one.
            false => format!("1,maxcpus={seats}"),
        };
        smp += &format!(",sockets={},dies={}", grid.sockets, grid.dies);
        // Older QEMUs do not know the word.
        if grid.modules > 1 {
            smp += &format!(",modules={}", grid.modules);
        }
        smp + &format!(",cores={},threads={}", grid.cores, grid.threads)
    }

    /// Whether every seat of the grid has a CPU.
    fn is_regular(&self) -> bool {
        let grid = &self.grid;
        let seats = grid.sockets * grid.dies * grid.modules * grid.cores * grid.threads;
        seats == self.seats.len()
    }

    /// CPUs that have to be plugged one by one.
    fn latecomers(&self) -> &[Seat] {
        match self.is_regular() {
            true => &[],
            false => &self.seats[1..],
        }
    }

    fn device(&self, seat: &Seat) -> String {
        let mut device = format!("max-x86_64-cpu,socket-id={}", seat.socket);
        if self.grid.dies > 1 {
            device += &format!(",die-id={}", seat.die);
        }
        if self.grid.modules > 1 {
            device += &format!(",module-id={}", seat.module);
        }
        device + &format!(",core-id={},thread-id={}", seat.core, seat.thread)
    }

    /// The node of each die; dies without CPUs get one too, or QEMU complains about their seats.
    fn homes(&self) -> BTreeSet<String> {
        let mut homes = BTreeSet::new();
        for socket in 0..self.grid.sockets {
            for die in 0..self.grid.dies {
                let here = |seat: &Seat| seat.socket == socket && seat.die == die;
                let cpu = self.seats.iter().position(here);
                let node = cpu.map_or(0, |cpu| self.machine.cpus[cpu].node);
                let mut home = format!("cpu,node-id={node},socket-id={socket}");
                if self.grid.dies > 1 {
                    home += &format!(",die-id={die}");
                }
                homes.insert(home);
            }
        }
        homes
    }
}

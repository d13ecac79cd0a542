// SPDX-License-Identifier: GPL-2.0-or-later
//! A machine as an x86-64 guest: the arguments that make QEMU's firmware describe it.
//!
//! QEMU takes a regular grid of sockets, dies, modules, cores and threads. An LLC becomes a die
//! and a cluster becomes a module whose cores share an L2; NUMA nodes are sets of dies. For an
//! irregular machine the grid is as large as the largest part needs, and surplus places stay
//! without a CPU; so every machine of equal CPUs comes up in its own shape.

mod arguments;

use perch_machine::Machine;

use super::tree::Branch;
use crate::error::{Error, Result};

/// The highest APIC ID that a CPU can have without interrupt remapping; 255 means all CPUs.
const LAST_APIC_ID: u64 = 254;

/// The place of a CPU in QEMU's grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Seat {
    pub socket: usize,
    pub die: usize,
    pub module: usize,
    pub core: usize,
    pub thread: usize,
}

/// QEMU's grid: the number of each level's parts in one part of the next larger level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    sockets: usize,
    dies: usize,
    modules: usize,
    cores: usize,
    threads: usize,
    /// The seat of each CPU, in the order in which the guest's kernel numbers them.
    pub seats: Vec<Seat>,
}

impl Grid {
    /// The grid that holds the tree, and the seat of each of its CPUs, depth first.
    pub fn of(tree: &Branch) -> Grid {
        let mut grid = Grid {
            sockets: tree.parts.len(),
            dies: 1,
            modules: 1,
            cores: 1,
            threads: 1,
            seats: Vec::new(),
        };
        for (socket, package) in tree.parts.iter().enumerate() {
            let dies = package.parts.iter().flat_map(|node| &node.parts);
            for (die, llc) in dies.enumerate() {
                grid.dies = grid.dies.max(die + 1);
                grid.modules = grid.modules.max(llc.parts.len());
                for (module, cluster) in llc.parts.iter().enumerate() {
                    grid.cores = grid.cores.max(cluster.parts.len());
                    for (core, threads) in cluster.parts.iter().enumerate() {
                        let count = threads.parts.len();
                        grid.threads = grid.threads.max(count);
                        grid.seats.extend((0..count).map(|thread| Seat {
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
        grid
    }

    /// Refuses a grid with CPUs that interrupts cannot reach: APIC IDs give each level of the grid
    /// its own bits.
    pub fn check(&self, asked: &Machine) -> Result<()> {
        let bits = |count: usize| count.next_power_of_two().trailing_zeros();
        let last = |seat: &Seat| {
            let levels = [
                (seat.die, self.dies),
                (seat.module, self.modules),
                (seat.core, self.cores),
                (seat.thread, self.threads),
            ];
            let id = |id: u64, (at, of): (usize, usize)| (id << bits(of)) | at as u64;
            levels.into_iter().fold(seat.socket as u64, id)
        };
        match self.seats.iter().map(last).max() {
            Some(id) if id > LAST_APIC_ID => Err(Error::Input(format!(
                "{}: {} CPUs in this shape reach APIC ID {id}, and a guest without interrupt \
                 remapping ends at {LAST_APIC_ID}; take fewer (--cpus 128)",
                asked.name,
                self.seats.len()
            ))),
            _ => Ok(()),
        }
    }
}

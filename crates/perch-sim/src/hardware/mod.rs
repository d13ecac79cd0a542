// SPDX-License-Identifier: GPL-2.0-only
//! What the hardware charges: distance, sharing, idle states, cold caches. Values come from
//! [`perch_machine::Hardware`]; none depends on which mechanism is on.

use perch_machine::{Distance, Hardware, Machine};

/// The waker's part of a wake-up: locks, the choice without its scans, the queue.
const WAKE_NS: u64 = 500;
/// Looking at one more CPU: its run queue's line, mostly shared.
const EXAMINE_NS: u64 = 15;
/// A pass of the balancer, without the CPUs it looks at.
const BALANCE_NS: u64 = 1500;

/// A machine's costs in the form the kernel model asks for them.
#[derive(Debug)]
pub struct Costs {
    hardware: Hardware,
    /// Per CPU: core, cluster (or a number nobody shares), LLC, node, package.
    place: Vec<[u32; 5]>,
    l1_lines: u64,
    l2_lines: u64,
}

impl Costs {
    /// The costs of a machine.
    pub fn new(machine: &Machine) -> Costs {
        let hardware = machine.hardware.clone();
        let line = u64::from(hardware.line_bytes.max(1));
        let place = machine.cpus.iter().enumerate().map(|(cpu, c)| {
            let alone = u32::MAX - cpu as u32;
            [c.core, c.cluster.unwrap_or(alone), c.llc, c.node, c.package]
        });
        Costs {
            place: place.collect(),
            l1_lines: hardware.l1d_bytes / line,
            l2_lines: hardware.l2_bytes / line,
            hardware,
        }
    }

    /// How far apart two CPUs are.
    pub fn distance(&self, a: usize, b: usize) -> Distance {
        if a == b {
            return Distance::Cpu;
        }
        let (x, y) = (&self.place[a], &self.place[b]);
        let shared = x.iter().zip(y).position(|(p, q)| p == q);
        Distance::ALL[shared.map_or(6, |level| level + 1)]
    }

    /// Fetching `lines` that `from` has modified last.
    pub fn transfer_ns(&self, lines: u32, from: usize, to: usize) -> u64 {
        u64::from(lines) * u64::from(self.hardware.transfer_ns.at(self.distance(from, to)))
    }

    /// From sending an interrupt to its handler on a CPU that is not idle.
    pub fn ipi_ns(&self, from: usize, to: usize) -> u64 {
        self.hardware.ipi_ns.at(self.distance(from, to)).into()
    }

    /// One switch between tasks.
    pub fn context_switch_ns(&self) -> u64 {
        self.hardware.context_switch_ns.into()
    }

    /// The waker's part of a wake-up whose scans looked at `examined` CPUs.
    pub fn wake_ns(&self, examined: u32) -> u64 {
        WAKE_NS + u64::from(examined) * EXAMINE_NS
    }

    /// One pass of the balancer over `cpus` CPUs.
    pub fn balance_ns(&self, cpus: u32) -> u64 {
        BALANCE_NS + u64::from(cpus) * EXAMINE_NS
    }

    /// Exit latency of the deepest idle state that pays for an idle period of `expected_ns`:
    /// what a governor that predicts well would choose.
    pub fn idle_exit_ns(&self, expected_ns: u64) -> u32 {
        let states = &self.hardware.idle_states;
        let worth = states.iter().rev().find(|s| u64::from(s.residency_ns) <= expected_ns);
        worth.or(states.first()).map_or(0, |s| s.exit_ns)
    }

    /// Speed of a CPU of this capacity, 1024ths, while `busy_siblings` of its core run too.
    pub fn speed_1024(&self, capacity: u32, busy_siblings: u32) -> u32 {
        let mut speed = capacity;
        for _ in 0..busy_siblings.min(1) {
            speed = speed * self.hardware.smt_throughput_1024 / 1024;
        }
        // A third and fourth thread share what two would have.
        if busy_siblings > 1 {
            speed = speed * 2 / (busy_siblings + 1);
        }
        speed.max(1)
    }

    /// Bringing a task's `footprint` lines back into the private caches of `cpu`. `others` is
    /// how many lines other tasks brought there since it left, if it left that CPU; a task that
    /// comes from elsewhere fetches all of them from `warm`.
    pub fn refill_ns(&self, footprint: u32, warm: Option<usize>, cpu: usize, others: u64) -> u64 {
        let Some(warm) = warm else {
            return u64::from(footprint) * u64::from(self.hardware.memory_ns.0);
        };
        if warm != cpu {
            return self.transfer_ns(footprint, warm, cpu);
        }
        let footprint = u64::from(footprint);
        // Least recently used goes first: what does not fit beside the others' lines is gone.
        let lost = |lines: u64| (footprint + others).saturating_sub(lines).min(footprint);
        let from_l2 = lost(self.l1_lines);
        let from_llc = lost(self.l2_lines);
        let at = |d: Distance| u64::from(self.hardware.transfer_ns.at(d));
        (from_l2 - from_llc) * at(Distance::Cpu) + from_llc * at(Distance::Cluster)
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! What the balancer knows of the machine.

use perch_policy::Topology;

use super::sums::{Groups, Sums};
use crate::era::BalanceRules;

/// What the balancer knows of the machine.
pub(crate) struct BalanceState {
    /// The groups of every domain and what runs in them.
    pub(super) groups: Groups,
    /// Working memory of a pass.
    pub(super) scratch: Scratch,
    /// CPUs with more than one task, by words of 64.
    pub(super) crowded: Vec<u64>,
    /// The largest capacity of a CPU.
    pub(super) largest: u32,
    /// Next time the averages of idle CPUs are brought up to date.
    pub(super) decay_next_ns: u64,
    /// Next time idle CPUs are balanced on their behalf.
    pub(super) nohz_next_ns: u64,
}

/// Working memory of a pass, kept between passes.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// LLCs with a busy CPU.
    pub(super) busy: Vec<bool>,
    /// Queues of the busiest group from which nothing may come.
    pub(super) pinned: Vec<usize>,
}

impl BalanceState {
    /// Of a machine where nothing runs.
    pub fn new(topology: &Topology, rules: &BalanceRules) -> BalanceState {
        let cpus = topology.nr_cpus();
        BalanceState {
            groups: Groups::new(topology, rules),
            scratch: Scratch::default(),
            crowded: vec![0; cpus.div_ceil(64)],
            largest: (0..cpus).map(|c| topology.capacity(c)).max().unwrap_or(0),
            decay_next_ns: 0,
            nohz_next_ns: 0,
        }
    }

    /// The numbers that are summed of a CPU were `before` and are `after`, and the CPU has `nr`
    /// tasks.
    #[inline(always)]
    pub fn follow(&mut self, cpu: usize, before: &Sums, after: &Sums, nr: u32) {
        if after != before {
            self.groups.change(cpu, before, after);
        }
        let (word, bit) = (cpu / 64, 1 << (cpu % 64));
        if nr > 1 {
            self.crowded[word] |= bit;
        } else {
            self.crowded[word] &= !bit;
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The balancer's state that belongs to no single CPU.

use perch_engine::Random;
use perch_policy::Topology;

use super::domain::CpuBalance;
use super::sums::Groups;
use super::words::put;
use crate::era::EraRules;
use crate::hardware::Costs;

/// The balancer's state that belongs to no single CPU: the groups of the domains with their sums,
/// the crowded CPUs, and the times of the passes for idle CPUs.
pub(crate) struct BalanceState {
    /// The source of the lots that newidle passes draw.
    pub(super) random: Random,
    /// The balancer's part of each CPU.
    pub(super) cpus: Vec<CpuBalance>,
    /// The groups of every domain, and the sums over their CPUs.
    pub(super) groups: Groups,
    /// The working memory of a pass.
    pub(super) scratch: Scratch,
    /// The crowded CPUs, which have more than one task, in words of 64 bits.
    pub(super) crowded: Vec<u64>,
    /// The CPUs that may have a runnable fair task, in words of 64 bits; all of them while no task is of
    /// the real-time class.
    pub(super) fair: Vec<u64>,
    /// The largest capacity of a CPU.
    pub(super) largest: u32,
    /// By the number of a group's set, the time until which newidle passes leave the group's capacity
    /// alone, in nanoseconds.
    pub(super) capacity_next_ns: Vec<u64>,
    /// The next time at which the averages of idle CPUs are updated, in nanoseconds.
    pub(super) decay_next_ns: u64,
    /// The next time at which an idle CPU balances for all, in nanoseconds.
    pub(super) nohz_next_ns: u64,
}

/// The working memory of a pass, kept between passes.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// LLCs with a busy CPU.
    pub(super) busy: Vec<bool>,
    /// The queues of the busiest group from which no task may come.
    pub(super) pinned: Pinned,
}

/// The queues from which no task may come, as far as a pass has found.
#[derive(Debug, Default)]
pub(super) struct Pinned {
    /// The CPUs, in words of 64 bits.
    words: Vec<u64>,
    /// The same CPUs, one by one.
    cpus: Vec<usize>,
}

impl Pinned {
    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.cpus.is_empty()
    }

    /// Returns those among the CPUs of a word.
    pub fn word(&self, number: usize) -> u64 {
        self.words[number]
    }

    pub fn add(&mut self, cpu: usize) {
        put(&mut self.words, cpu, true);
        self.cpus.push(cpu);
    }

    pub fn clear(&mut self) {
        let words = &mut self.words;
        self.cpus.drain(..).for_each(|cpu| put(words, cpu, false));
    }
}

impl BalanceState {
    /// Returns the state of a machine on which nothing runs.
    pub fn new(
        topology: &Topology,
        rules: &EraRules,
        costs: &Costs,
        mut random: Random,
    ) -> BalanceState {
        let cpus = topology.nr_cpus();
        let state = |cpu| CpuBalance::new(topology, rules, costs, cpu, &mut random);
        let states = (0..cpus).map(state).collect();
        BalanceState {
            cpus: states,
            random,
            groups: Groups::new(topology, rules),
            scratch: Scratch {
                pinned: Pinned { words: vec![0; cpus.div_ceil(64)], cpus: Vec::new() },
                ..Scratch::default()
            },
            crowded: vec![0; cpus.div_ceil(64)],
            fair: vec![!0; cpus.div_ceil(64)],
            largest: (0..cpus).map(|c| topology.capacity(c)).max().unwrap_or(0),
            capacity_next_ns: vec![0; topology.nr_sets()],
            decay_next_ns: 0,
            nohz_next_ns: 0,
        }
    }

    /// Notes that the figures of `cpu` may have changed, and whether the CPU is crowded: it has `nr`
    /// tasks now.
    #[inline(always)]
    pub fn follow(&mut self, cpu: usize, nr: u32) {
        self.groups.change(cpu);
        put(&mut self.crowded, cpu, nr > 1);
    }

    /// Notes whether `cpu` has a runnable fair task.
    pub fn note_fair(&mut self, cpu: usize, any: bool) {
        put(&mut self.fair, cpu, any);
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The balancer's state of a CPU and of each of its domains.

use perch_engine::Random;
use perch_policy::{Level, Topology};

use super::cpu_load::Weights;
use super::least_interval_ns;
use super::lot::Lot;
use crate::era::EraRules;
use crate::hardware::Costs;

/// The balancing state of one domain of one CPU.
#[derive(Clone, Copy, Debug)]
pub struct DomainState {
    /// The domain's number in the topology.
    pub(super) domain: usize,
    /// The index of the domain's group that the CPU is in.
    pub(super) local_group: usize,
    /// True if the level below says that tasks should spread over this domain's groups.
    pub(super) prefer_sibling: bool,
    /// True if the domain spans nodes.
    pub(super) is_numa: bool,
    /// True if the domain is a core.
    pub(super) is_core: bool,
    /// The number of CPUs.
    pub(super) weight: u32,
    /// The time that a pass takes where every CPU is busy, without what it takes where none is, in
    /// nanoseconds: the lines of their run queues come from there.
    pub(super) lines_ns: u64,
    /// The shortest time between two periodic passes, in nanoseconds.
    pub(super) least_ns: u64,
    /// The number of passes in a row that moved nothing though there was an imbalance.
    pub(super) failed: u32,
    /// The current interval, in nanoseconds.
    pub(super) interval_ns: u64,
    /// The time of the last periodic pass.
    pub(super) last_ns: u64,
    /// The decayed maximum of the cost of newidle passes over this domain, in nanoseconds.
    pub(super) newidle_cost_ns: u64,
    /// The time at which that cost was last decayed.
    pub(super) newidle_decay_ns: u64,
    /// 7.2: the lot that decides whether a newidle pass is tried.
    pub(super) lot: Lot,
}

/// The balancer's part of a CPU.
#[derive(Debug)]
pub(crate) struct CpuBalance {
    /// The load of the running task if it does not fit this CPU, else 0.
    pub(super) misfit: u32,
    /// 3.4: the averages of the queued weight.
    pub(super) weights: Weights,
    /// The earliest time of the next periodic pass.
    pub(super) next_balance_ns: u64,
    /// The CPU's domains, lowest first.
    pub(super) domains: Vec<DomainState>,
}

impl CpuBalance {
    /// Returns the state of a CPU on which nothing has run since the boot; its first periodic pass is
    /// due within 64 ms.
    pub fn new(
        topology: &Topology,
        rules: &EraRules,
        costs: &Costs,
        cpu: usize,
        random: &mut Random,
    ) -> CpuBalance {
        let next_balance_ns = random.below(64_000_000);
        let mut prefer_sibling = false;
        let domains = topology.domain_numbers(cpu).map(|domain| {
            let view = topology.domain(domain);
            let (weight, is_numa) = (view.span().weight(), view.level() == Level::Numa);
            let local = (0..view.groups()).position(|g| view.group(g).contains(cpu));
            DomainState {
                domain,
                local_group: local.expect("a domain's groups cover its CPUs"),
                prefer_sibling: std::mem::replace(&mut prefer_sibling, view.prefers_sibling()),
                is_numa,
                is_core: view.level() == Level::Smt,
                weight,
                lines_ns: costs.balance_lines_ns(cpu, view.span()),
                least_ns: least_interval_ns(rules, weight, is_numa),
                failed: 0,
                interval_ns: u64::from(weight) * 1_000_000,
                // The kernel built the domains at boot, long ago and not all at once.
                last_ns: 0,
                newidle_cost_ns: REMEMBERED_NS[random.below(REMEMBERED_NS.len() as u64) as usize],
                newidle_decay_ns: 0,
                lot: Lot::new(),
            }
        });
        CpuBalance {
            misfit: 0,
            weights: Weights::default(),
            next_balance_ns,
            domains: domains.collect(),
        }
    }
}

/// What CPUs of machines that had run for long remembered as the dearest newidle pass over a domain,
/// in nanoseconds (docs/calibration.md#what-a-move-costs).
const REMEMBERED_NS: [u64; 10] =
    [5705, 10_823, 11_326, 15_760, 21_487, 22_973, 35_080, 39_188, 72_524, 107_913];

/// Returns how many passes over a domain may fail before the balancer moves hot tasks too
/// (`cache_nice_tries`).
pub(super) fn nice_tries(topology: &Topology, number: usize) -> u32 {
    match topology.domain(number).level() {
        Level::Numa => 2,
        _ => 1,
    }
}

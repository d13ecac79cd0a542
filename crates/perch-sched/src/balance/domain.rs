// SPDX-License-Identifier: GPL-2.0-or-later
//! What a CPU's balancing remembers.

use perch_policy::{Level, Topology};

use super::cpu_load::Weights;

/// Balancing state of one domain of one CPU.
#[derive(Clone, Copy, Debug)]
pub struct DomainState {
    /// Number in the topology.
    pub(super) domain: usize,
    /// Which of the domain's groups the CPU is in.
    pub(super) local_group: usize,
    /// The level below says that tasks should spread over this domain's groups.
    pub(super) prefer_sibling: bool,
    /// Passes in a row that moved nothing though there was an imbalance.
    pub(super) failed: u32,
    /// Current interval, nanoseconds.
    pub(super) interval_ns: u64,
    /// When the last periodic pass was.
    pub(super) last_ns: u64,
    /// What newidle passes over this domain have cost at most, decayed, nanoseconds.
    pub(super) newidle_cost_ns: u64,
    /// When that cost was last decayed.
    pub(super) newidle_decay_ns: u64,
    /// 7.2: successes among the last 1024 newidle passes, and passes counted.
    pub(super) newidle_success: u32,
    /// See `newidle_success`.
    pub(super) newidle_calls: u32,
}

/// The balancer's part of a CPU.
#[derive(Debug)]
pub(crate) struct CpuBalance {
    /// Load of the running task if it does not fit this CPU, else 0.
    pub(super) misfit: u32,
    /// 3.4: averages of the weight queued.
    pub(super) weights: Weights,
    /// Earliest time of the next periodic pass.
    pub(super) next_balance_ns: u64,
    /// Domains, lowest first.
    pub(super) domains: Vec<DomainState>,
}

impl CpuBalance {
    /// Of a CPU on which nothing has run; the first periodic pass is due at `next_balance_ns`.
    pub fn new(topology: &Topology, cpu: usize, next_balance_ns: u64) -> CpuBalance {
        let mut prefer_sibling = false;
        let domains = topology.domain_numbers(cpu).map(|domain| {
            let view = topology.domain(domain);
            let weight = u64::from(view.span().weight());
            let local = (0..view.groups()).position(|g| view.group(g).contains(cpu));
            DomainState {
                domain,
                local_group: local.expect("a domain's groups cover its CPUs"),
                prefer_sibling: std::mem::replace(&mut prefer_sibling, view.prefers_sibling()),
                failed: 0,
                interval_ns: weight * 1_000_000,
                // Domains were built at boot, long ago and not all at once.
                last_ns: 0,
                newidle_cost_ns: 0,
                newidle_decay_ns: 0,
                newidle_success: 512,
                newidle_calls: 0,
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

/// How many passes over a domain may fail before the balancer moves hot tasks too
/// (`cache_nice_tries`).
pub(super) fn nice_tries(topology: &Topology, number: usize) -> u32 {
    match topology.domain(number).level() {
        Level::Numa => 2,
        _ => 1,
    }
}

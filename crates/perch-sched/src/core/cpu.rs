// SPDX-License-Identifier: GPL-2.0-or-later
//! A CPU: what runs on it, what is on its way to it, and what its balancing remembers.

use std::collections::VecDeque;

use perch_engine::Random;
use perch_policy::Topology;

use super::streak::{Ended, Streak};
use crate::balance::Weights;
use crate::class::fair::pelt::Clock;
use crate::class::rt::RtQueue;
use crate::hardware::Costs;

/// Balancing state of one domain of one CPU.
#[derive(Clone, Copy, Debug)]
pub struct DomainState {
    /// Number in the topology.
    pub domain: u32,
    /// Which of the domain's groups the CPU is in.
    pub local_group: u32,
    /// The level below says that tasks should spread over this domain's groups.
    pub prefer_sibling: bool,
    /// Passes in a row that moved nothing though there was an imbalance.
    pub failed: u32,
    /// Current interval, nanoseconds.
    pub interval_ns: u64,
    /// When the last periodic pass was.
    pub last_ns: u64,
    /// What newidle passes over this domain have cost at most, decayed, nanoseconds.
    pub newidle_cost_ns: u64,
    /// When that cost was last decayed.
    pub newidle_decay_ns: u64,
    /// 7.2: successes among the last 1024 newidle passes, and passes counted.
    pub newidle_success: u32,
    /// See `newidle_success`.
    pub newidle_calls: u32,
}

/// A CPU.
#[derive(Debug)]
pub struct Cpu {
    /// Its last-level cache domain, if it shares one.
    pub llc: Option<usize>,
    /// The running task.
    pub current: Option<u32>,
    /// How often it chose a task.
    pub choices: u64,
    /// Real-time class.
    pub rt: RtQueue,
    /// Overtakes older segment events of this CPU.
    pub segment_tag: u32,
    /// When the running segment began; in the future while the switch to it is under way.
    pub segment_start_ns: u64,
    /// The running task's segment is many rounds at once.
    pub streak: Option<Streak>,
    /// Where the last streak ended, until the task's program has been told.
    pub ended: Option<Ended>,
    /// Its speed, 1024ths.
    pub speed_1024: u32,
    /// Load of the running task if it does not fit this CPU, else 0.
    pub misfit: u32,
    /// 5.5: what idle scans of this CPU's wakers cost on average, nanoseconds.
    pub scan_cost_ns: u64,
    /// The clock of its averages.
    pub pelt: Clock,
    /// 3.4: averages of the weight queued.
    pub weights: Weights,
    /// The running task should give way as soon as possible.
    pub need_resched: bool,
    /// Tasks woken from afar, to be enqueued by this CPU itself.
    pub wake_list: VecDeque<u32>,
    /// An interrupt is on its way.
    pub ipi_pending: bool,
    /// Lines that tasks brought into this CPU's caches so far.
    pub fill: u64,
    /// Nanoseconds that it has waited for contended cache lines and nobody has spent yet, and
    /// when they were last more.
    pub owed_ns: u64,
    /// See `owed_ns`.
    pub owed_since_ns: u64,
    /// When the stretches of the kernel's own work end that it does while it is idle, in order;
    /// see `chores.rs`.
    pub chores: Vec<u64>,
    /// It runs its idle task.
    pub idle: bool,
    /// When the CPU became idle last.
    pub idle_since_ns: u64,
    /// Nanoseconds that it was not idle, as far as they are counted.
    pub busy_ns: u64,
    /// Since when its busy time is not yet counted.
    pub busy_since_ns: u64,
    /// Moving average of idle periods, nanoseconds.
    pub avg_idle_ns: u64,
    /// avg_idle's ceiling is twice this.
    pub max_idle_cost_ns: u64,
    /// Earliest time of the next periodic pass.
    pub next_balance_ns: u64,
    /// Domains, lowest first.
    pub domains: Vec<DomainState>,
}

impl Cpu {
    /// The running task, if it is a fair one.
    #[inline]
    pub fn fair_current(&self) -> Option<u32> {
        self.current.filter(|_| !self.rt.running)
    }

    /// How long this much work, given at full capacity, takes here.
    pub fn wall_ns(&self, work_ns: u64) -> u64 {
        if self.speed_1024 == 1024 {
            work_ns
        } else {
            (work_ns * 1024).div_ceil(u64::from(self.speed_1024))
        }
    }
}

/// A CPU on which nothing has run yet.
pub(super) fn new_cpu(topology: &Topology, costs: &Costs, cpu: usize, random: &mut Random) -> Cpu {
    let mut prefer_sibling = false;
    let domains = topology.domain_numbers(cpu).map(|domain| {
        let view = topology.domain(domain);
        let weight = u64::from(view.span().weight());
        let local = (0..view.groups()).position(|g| view.group(g).contains(cpu));
        DomainState {
            domain: domain as u32,
            local_group: local.expect("a domain's groups cover its CPUs") as u32,
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
    Cpu {
        llc: topology.llc(cpu),
        current: None,
        choices: 0,
        rt: RtQueue::default(),
        segment_tag: 0,
        segment_start_ns: 0,
        streak: None,
        ended: None,
        speed_1024: costs.speed_1024(topology.capacity(cpu), 0),
        misfit: 0,
        scan_cost_ns: 0,
        pelt: Clock::new(topology.capacity(cpu)),
        weights: Weights::default(),
        need_resched: false,
        wake_list: VecDeque::new(),
        ipi_pending: false,
        fill: 0,
        owed_ns: 0,
        owed_since_ns: 0,
        chores: Vec::new(),
        idle: true,
        idle_since_ns: 0,
        busy_ns: 0,
        busy_since_ns: 0,
        avg_idle_ns: 1_000_000,
        max_idle_cost_ns: 500_000,
        next_balance_ns: random.below(64_000_000),
        domains: domains.collect(),
    }
}

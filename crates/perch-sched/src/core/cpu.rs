// SPDX-License-Identifier: GPL-2.0-or-later
//! A CPU: what runs on it, what is on its way to it, and what its balancing remembers.

use std::collections::VecDeque;

use perch_engine::Random;
use perch_policy::Topology;

use super::contend::Owed;
use super::streak::{Ended, Streak};
use crate::balance::CpuBalance;
use crate::class::pelt::Clock;
use crate::class::rt::RtQueue;
use crate::hardware::Costs;

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
    /// The clock of its averages.
    pub pelt: Clock,
    /// The running task should give way as soon as possible.
    pub need_resched: bool,
    /// Tasks woken from afar, to be enqueued by this CPU itself.
    pub wake_list: VecDeque<u32>,
    /// An interrupt is on its way.
    pub ipi_pending: bool,
    /// Lines that tasks brought into this CPU's caches so far.
    pub fill: u64,
    /// What it has waited for contended cache lines.
    pub lines: Owed,
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
    /// The balancer's part.
    pub balance: CpuBalance,
}

impl Cpu {
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
        pelt: Clock::new(topology.capacity(cpu)),
        need_resched: false,
        wake_list: VecDeque::new(),
        ipi_pending: false,
        fill: 0,
        lines: Owed::default(),
        chores: Vec::new(),
        idle: true,
        idle_since_ns: 0,
        busy_ns: 0,
        busy_since_ns: 0,
        avg_idle_ns: 1_000_000,
        max_idle_cost_ns: 500_000,
        balance: CpuBalance::new(topology, cpu, random.below(64_000_000)),
    }
}

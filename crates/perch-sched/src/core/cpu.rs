// SPDX-License-Identifier: GPL-2.0-or-later
//! A CPU: what runs on it, what is on its way to it, and what its balancing remembers.

use perch_engine::Random;
use perch_policy::Topology;

use super::chores::Chores;
use super::contended::Owed;
use super::idleness::Idleness;
use super::inbox::Inbox;
use super::segment::Segment;
use crate::balance::CpuBalance;
use crate::class::pelt::Clock;
use crate::class::rt::RtQueue;
use crate::hardware::Costs;
use crate::id::TaskId;

/// A CPU.
#[derive(Debug)]
pub struct Cpu {
    /// Its last-level cache domain, if it shares one.
    pub llc: Option<usize>,
    /// The running task.
    pub current: Option<TaskId>,
    /// The real-time class's part.
    pub rt: RtQueue,
    /// The running task's segment.
    pub segment: Segment,
    /// Its speed, 1024ths.
    pub speed_1024: u32,
    /// The clock of its averages.
    pub pelt: Clock,
    /// The running task should give way as soon as possible.
    pub need_resched: bool,
    /// What is on its way to it.
    pub inbox: Inbox,
    /// Lines that tasks brought into this CPU's caches so far.
    pub fill: u64,
    /// What it has waited for contended cache lines.
    pub lines: Owed,
    /// The kernel's own work that it does while it is idle.
    pub chores: Chores,
    /// Since when it is idle or busy, and how long it usually is idle.
    pub idleness: Idleness,
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
        rt: RtQueue::default(),
        segment: Segment::default(),
        speed_1024: costs.speed_1024(topology.capacity(cpu), 0),
        pelt: Clock::new(topology.capacity(cpu)),
        need_resched: false,
        inbox: Inbox::default(),
        fill: 0,
        lines: Owed::default(),
        chores: Chores::default(),
        idleness: Idleness::new(),
        balance: CpuBalance::new(topology, cpu, random.below(64_000_000)),
    }
}

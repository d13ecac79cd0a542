// SPDX-License-Identifier: GPL-2.0-or-later
//! A CPU: its speed, the segment of work under way, and what is on its way to it.

use perch_policy::Topology;

use super::chores::Chores;
use super::claims::Claim;
use super::contended::Owed;
use super::inbox::Inbox;
use super::leaving::Leaver;
use super::segment::Segment;
use crate::balance::Search;
use crate::hardware::Costs;

#[derive(Debug)]
pub struct Cpu {
    /// The CPU's LLC domain, if it shares a last-level cache.
    pub(super) llc: Option<usize>,
    /// The running task's segment.
    pub(super) segment: Segment,
    /// The CPU's speed, in 1024ths of full capacity.
    pub(super) speed_1024: u32,
    /// The interrupts and the tasks that are on their way to the CPU.
    pub(super) inbox: Inbox,
    /// The number of lines that tasks have brought into this CPU's caches so far.
    pub(super) fill: u64,
    /// The time that the CPU has waited for contended cache lines.
    pub(super) lines: Owed,
    /// 5.5: the average cost of the idle scans of wakers here, in nanoseconds.
    pub(super) scan_cost_ns: u64,
    /// The kernel's own work that the CPU does while it is idle.
    pub(super) chores: Chores,
    /// The running task's run time when it was picked, nanoseconds; kept for the mechanism behind only.
    pub(super) turn_start_ns: u64,
    /// The task that fell asleep here last, while the CPU switches away from it.
    pub(super) leaver: Leaver,
    /// What the waker that ran here last has chosen, until others see it.
    pub(super) claim: Claim,
    /// True while the CPU looks for a task that waits elsewhere, under an outside scheduler.
    pub(super) searches: bool,
    /// The search for a task that waits elsewhere, while it goes on.
    pub(super) newidle: Option<Search>,
}

impl Cpu {
    /// Returns how many nanoseconds this CPU takes for `work_ns`, which is work in nanoseconds at
    /// full capacity.
    pub(super) fn wall_ns(&self, work_ns: u64) -> u64 {
        if self.speed_1024 == 1024 {
            work_ns
        } else {
            (work_ns * 1024).div_ceil(u64::from(self.speed_1024))
        }
    }
}

/// Returns a CPU on which nothing has run yet.
pub(super) fn new_cpu(topology: &Topology, costs: &Costs, cpu: usize) -> Cpu {
    Cpu {
        llc: topology.llc(cpu),
        segment: Segment::default(),
        speed_1024: costs.speed_1024(topology.capacity(cpu), 0),
        inbox: Inbox::default(),
        fill: 0,
        lines: Owed::default(),
        scan_cost_ns: 0,
        chores: Chores::default(),
        turn_start_ns: 0,
        leaver: Leaver::default(),
        claim: Claim::default(),
        searches: false,
        newidle: None,
    }
}

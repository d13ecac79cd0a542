// SPDX-License-Identifier: GPL-2.0-or-later
//! The real-time class's state of the root domain and of a task.

use perch_policy::{Mode, Overload, Policy, Topology};

use super::cpupri::CpuPri;
use super::round::Round;
use crate::setup::NewTask;

/// The real-time part of the root domain: what CPUs know of one another.
#[derive(Debug)]
pub(crate) struct RtDomain {
    pub(super) cpupri: CpuPri,
    /// The number of overloaded CPUs, as the policy's counters have it.
    pub(super) overload: Overload,
    /// The overloaded CPUs, in words of 64 bits (`rto_mask`).
    pub(super) mask: Vec<u64>,
    /// The round of interrupts that ask overloaded CPUs to push.
    pub(super) round: Round,
    /// Up to 6.11: the time at which the class's period ends.
    pub(super) period_ns: u64,
    /// Working memory: the CPUs of the lowest level.
    pub(super) lowest: Vec<u64>,
}

impl RtDomain {
    pub fn new(policy: &Policy, topology: &Topology) -> RtDomain {
        let modes = policy.modes();
        let exact = modes.overload == Mode::Perch;
        let overload = Overload::new(modes.overload_layout(), exact, topology);
        RtDomain {
            cpupri: CpuPri::new(topology.nr_cpus()),
            overload: overload.expect("memory for a counter a cache"),
            mask: vec![0; topology.nr_cpus().div_ceil(64)],
            round: Round::default(),
            period_ns: 1_000_000_000,
            lowest: Vec::new(),
        }
    }
}

/// Returns the real-time part of the root domain, if the workload has real-time tasks.
pub(crate) fn domain(
    specs: &[NewTask],
    policy: &Policy,
    topology: &Topology,
) -> Option<Box<RtDomain>> {
    let any = specs.iter().any(|spec| spec.priority > 0);
    any.then(|| Box::new(RtDomain::new(policy, topology)))
}

/// The real-time part of a task; all zero for a fair one.
#[derive(Clone, Copy, Debug, Default)]
pub struct RtEntity {
    /// The priority, 1 to 99; 0 for a fair task.
    pub(super) priority: u8,
    /// True if the task has slices (RR).
    pub(super) slices: bool,
    /// The number of ticks left of the slice.
    pub(super) ticks: u64,
    /// The capacity that the task asks for, where CPUs differ.
    pub(super) capacity: u32,
}

impl RtEntity {
    pub fn new(spec: &NewTask) -> RtEntity {
        if spec.priority == 0 {
            return RtEntity::default();
        }
        // A task that gives no bounds for its utilisation asks for the largest CPUs
        // (`sched_util_clamp_min_rt_default`).
        let capacity = match spec.uclamp {
            (0, 1024) => 1024,
            (min, _) => min,
        };
        RtEntity { priority: spec.priority, slices: spec.slices, ticks: 0, capacity }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The changing state of a CPU and of a last-level cache, as the policy sees that state.

use bytemuck::{Pod, Zeroable};

use crate::face::face;

face! {
/// The state of a CPU that changes while the machine runs, as the policy sees it. Layout of `struct
/// perch_native_cpu`.
///
/// Loads count 1024 for one nice-0 task that always runs, capacities 1024 for the most capable
/// CPU.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct CpuState = perch_native_cpu {
    /// Runnable fair tasks, the running one included.
    pub nr_running: u32,
    /// Load average of the queue.
    pub load: u32,
    /// Runnable average of the queue.
    pub runnable: u32,
    /// Utilisation of the queue: max of average and estimate.
    pub util: u32,
    /// Those of the runnable tasks that are queued only to lose their lag (EEVDF).
    pub nr_delayed: u32,
    /// Capacity left for fair tasks.
    pub capacity: u32,
    /// Load average of the running task; 0 on an idle CPU.
    pub curr_load: u32,
    /// Exit latency of the idle state the CPU is in, nanoseconds.
    pub idle_exit_ns: u32,
    /// When the CPU became idle, nanoseconds; meaningful while it is idle.
    pub idle_since_ns: u64,
}
}

face! {
/// How full a last-level cache is. Layout of `struct perch_llc_load`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct LlcLoad = perch_llc_load {
    /// Sum of its CPUs' utilisation, 1024 for one that is always busy: at the last periodic
    /// balance, or now (mode perch).
    pub util: u32,
    /// Slow average of its runnable tasks (mode posted); those there or on their way now (perch).
    pub nr: u32,
    pub(crate) capacity_left: u32,
    pub(crate) capacity: u32,
    pub(crate) cores: u32,
    pub(crate) size_kib: u32,
    pub(crate) busy: u32,
    pub(crate) leaving: u32,
}
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The C structures of policy/, field by field. Only this crate's safe face uses them.

use std::ffi::c_void;

/// `PERCH_MODES_SIZE`.
const PERCH_MODES_SIZE: u32 = 16;

include!(concat!(env!("OUT_DIR"), "/mirror.rs"));
pub(crate) use perch_modes as Modes;

/// `struct perch_rules`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub flip_decay_ns: u64,
    pub idle_sees_policy: u8,
    pub empty_mask_fails_early: u8,
    pub groups_by_affinity: u8,
    pub wake_cap: u8,
    pub early_groups: u8,
    pub recent_when_taken: u8,
    pub far_imbalance_pct: u8,
    pub near_imbalance_pct: u8,
    pub early_path: u8,
    pub pad: [u8; 7],
}

/// `struct perch_policy`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub modes: Modes,
    pub rules: Rules,
}

/// `struct perch_wake`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wake {
    pub now_ns: u64,
    pub this_cpu: u32,
    pub prev_cpu: u32,
    pub flags: u32,
    pub pad: u32,
}

/// `struct perch_verdict`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Verdict {
    pub cpu: u32,
    pub reason: u32,
    pub examined: u32,
    pub target: u32,
    pub cache: u32,
    pub pad: u32,
}

/// `struct perch_occupancy`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Occupancy {
    pub runtime_ns: u64,
    pub epoch: u64,
}

/// `struct perch_epoch`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Epoch {
    pub runtime_ns: u64,
    pub epoch: u64,
    pub next_ns: u64,
    pub pad: u64,
}

/// `struct perch_seat`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    pub hot_cpu: u32,
    pub occupancy: u32,
    pub preferred: u32,
    pub pad: u32,
}

/// `struct perch_process`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub occupancy: *mut Occupancy,
    pub seats: *mut Seat,
    pub scan_epoch: u64,
    pub pref_cpu: u32,
    pub nr_preferred: u32,
    pub nr_threads: u32,
    pub nr_running: u32,
    pub running_avg: u32,
    pub footprint_kib: u32,
}

/// `struct perch_overload`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overload {
    pub counters: *mut *mut u64,
    pub nr: u32,
    pub layout: u32,
    pub exact: u32,
    pub pad: u32,
}

/// `struct perch_overload_memory`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct OverloadMemory {
    pub alloc: unsafe extern "C" fn(*mut c_void, u64, u64, u32) -> *mut c_void,
    pub free: unsafe extern "C" fn(*mut c_void, *mut c_void, u64, u64),
    pub context: *mut c_void,
}

/// `struct perch_native_set`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Set {
    pub first: u32,
    pub words: u32,
    pub offset: u32,
    pub weight: u32,
}

/// `struct perch_native_domain`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Domain {
    pub flags: u32,
    pub set: u32,
    pub imbalance_pct: u32,
    pub imb_numa_nr: u32,
    pub groups: u32,
    pub first_group: u32,
    pub level: u32,
    pub pad: u32,
}

/// `PERCH_MAX_LEVELS`.
pub(crate) const MAX_LEVELS: usize = 12;

/// `PERCH_NONE`.
pub(crate) const NONE: u32 = u32::MAX;

/// `struct perch_native_place`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub core_set: u32,
    pub cluster_set: u32,
    pub llc_set: u32,
    pub llc: u32,
    pub asym_set: u32,
    pub capacity: u32,
    pub domains: [u32; MAX_LEVELS + 1],
}

/// `struct perch_native_llc`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Llc {
    pub set: u32,
    pub nr_idle_scan: u32,
    pub idle_cores: u32,
    pub pad: u32,
}

/// `struct perch_topology`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Topology {
    pub pool: *const u64,
    pub sets: *const Set,
    pub domains: *const Domain,
    pub group_sets: *const u32,
    pub places: *const Place,
    pub llc_of_set: *const u32,
    pub llc_sets: *const u32,
    pub nr_cpus: u32,
    pub nr_llcs: u32,
    pub has_clusters: u8,
    pub has_smt: u8,
    pub max_capacity: u16,
    pub pad: u32,
}

/// `struct perch_host`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host {
    pub topology: Topology,
    pub idle: *const u64,
    pub sched_idle: *const u64,
    pub cpus: *const crate::host::CpuState,
    pub llcs: *mut Llc,
    pub epochs: *mut Epoch,
    pub loads: *mut crate::cache::LlcLoad,
}

/// `struct perch_question`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    pub host: Host,
    pub policy: Policy,
    pub wake: Wake,
    pub waker: crate::host::TaskState,
    pub wakee: crate::host::TaskState,
    pub verdict: Verdict,
}

unsafe extern "C" {
    pub(crate) fn perch_native_select(
        host: *mut Host,
        policy: *const Policy,
        wake: *const Wake,
        waker: *mut crate::host::TaskState,
        wakee: *mut crate::host::TaskState,
        verdict: *mut Verdict,
    );
    pub(crate) fn perch_native_account(
        host: *mut Host,
        process: *mut Process,
        cpu: u32,
        now_ns: u64,
        delta_ns: u64,
    );
    pub(crate) fn perch_native_due(
        host: *mut Host,
        policy: *const Policy,
        process: *mut Process,
        cpu: u32,
        now_ns: u64,
    ) -> std::ffi::c_int;
    pub(crate) fn perch_native_scan(
        host: *mut Host,
        policy: *const Policy,
        process: *mut Process,
        cpu: u32,
        now_ns: u64,
    );
    pub(crate) fn perch_native_draws(host: *mut Host, src: u32, dst: u32) -> u32;
    pub(crate) fn perch_native_note(host: *mut Host, llc: u32, util: u32, nr: u32);
    pub(crate) fn perch_native_overload_init(
        overload: *mut Overload,
        memory: *const OverloadMemory,
        layout: u32,
        exact: u32,
        nodes: *const u32,
        nr: u32,
    ) -> std::ffi::c_int;
    pub(crate) fn perch_native_overload_free(
        overload: *mut Overload,
        memory: *const OverloadMemory,
    );
    pub(crate) fn perch_native_overload_home(layout: u32, node: u32, llc: u32) -> u32;
    pub(crate) fn perch_native_overload_set(
        overload: *const Overload,
        mark: *mut u32,
        home: u32,
    ) -> u32;
    pub(crate) fn perch_native_overload_clear(
        overload: *const Overload,
        mark: *mut u32,
        home: u32,
    ) -> u32;
    pub(crate) fn perch_native_overload_read(
        overload: *const Overload,
        home: u32,
        loads: *mut u32,
    ) -> u32;
    pub(crate) fn perch_native_move(
        host: *mut Host,
        policy: *const Policy,
        task: *const crate::host::TaskState,
        src: u32,
        dst: u32,
    ) -> u32;
}

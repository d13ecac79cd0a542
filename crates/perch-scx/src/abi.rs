// SPDX-License-Identifier: GPL-2.0-or-later
//! native/abi.h in Rust: what a natively compiled scheduler and the simulated kernel know of each
//! other.

use std::ffi::{c_char, c_void};

use crate::core::{Core, Walk};
use crate::memory::{CgroupAt, MaskAt, TaskAt};

/// `struct scx_map`: a map as its definition declares it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct MapType {
    pub kind: u32,
    pub max_entries: u32,
    pub key_size: u32,
    pub value_size: u32,
}

type Any = *const c_void;

/// `struct scx_kernel`: the functions of the kernel that the program's helpers and kfuncs call.
#[repr(C)]
pub(crate) struct KernelCalls {
    pub core: *const Core,
    pub rqs: *mut c_void,
    pub nr_cpus: u32,
    pub now: extern "C" fn(&Core) -> u64,
    pub this_cpu: extern "C" fn(&Core) -> u32,
    pub random: extern "C" fn(&Core) -> u32,
    pub current: extern "C" fn(&Core) -> TaskAt,
    pub error: extern "C" fn(&Core, *const c_char),
    pub task_cpu: extern "C" fn(&Core, Any) -> i32,
    pub task_cgroup: extern "C" fn(&Core, Any) -> CgroupAt,
    pub cgroup_ancestor: extern "C" fn(&Core, Any, i32) -> CgroupAt,
    pub create_dsq: extern "C" fn(&Core, u64, i32) -> i32,
    pub destroy_dsq: extern "C" fn(&Core, u64),
    pub dsq_nr_queued: extern "C" fn(&Core, u64) -> i32,
    pub dsq_insert: extern "C" fn(&Core, Any, u64, u64, u64) -> u8,
    pub dsq_insert_vtime: extern "C" fn(&Core, Any, u64, u64, u64, u64) -> u8,
    pub dsq_move_to_local: extern "C" fn(&Core, u64, u64) -> u8,
    pub iter_new: extern "C" fn(&Core, &mut Walk, u64, u64) -> i32,
    pub iter_next: extern "C" fn(&Core, &mut Walk) -> TaskAt,
    pub iter_destroy: extern "C" fn(&Core, &mut Walk),
    pub move_set_slice: extern "C" fn(&Core, &mut Walk, u64),
    pub move_set_vtime: extern "C" fn(&Core, &mut Walk, u64),
    pub dsq_move: extern "C" fn(&Core, &mut Walk, Any, u64, u64, u8) -> u8,
    pub reenqueue_local: extern "C" fn(&Core) -> u32,
    pub kick_cpu: extern "C" fn(&Core, i32, u64),
    pub idle_mask: extern "C" fn(&Core, u8) -> Any,
    pub test_and_clear_cpu_idle: extern "C" fn(&Core, i32) -> u8,
    pub pick_idle_cpu: extern "C" fn(&Core, Any, u64) -> i32,
    pub pick_any_cpu: extern "C" fn(&Core, Any, u64) -> i32,
    pub select_cpu: extern "C" fn(&Core, Any, i32, u64, Any, u64) -> i32,
    pub map_lookup: extern "C" fn(&Core, usize, &MapType, Any, i32) -> *mut c_void,
    pub map_update: extern "C" fn(&Core, usize, &MapType, Any, Any, u64) -> i32,
    pub map_delete: extern "C" fn(&Core, usize, &MapType, Any) -> i32,
    pub map_push: extern "C" fn(&Core, usize, &MapType, Any) -> i32,
    pub map_pop: extern "C" fn(&Core, usize, &MapType, *mut c_void) -> i32,
    pub storage_get: extern "C" fn(&Core, usize, &MapType, usize, Any, u64) -> *mut c_void,
    pub storage_delete: extern "C" fn(&Core, usize, usize) -> i32,
    pub timer_start: extern "C" fn(&Core, usize, u64, u64) -> i32,
    pub line: extern "C" fn(&Core, usize, u8),
    pub claim_lost: extern "C" fn(&Core) -> u8,
    pub timer_cancel: extern "C" fn(&Core, usize) -> i32,
    pub map_key: extern "C" fn(&Core, usize, usize, *mut u8) -> *mut c_void,
    pub task_of_pid: extern "C" fn(&Core, i32) -> TaskAt,
    pub cgroup_of_id: extern "C" fn(&Core, u64) -> CgroupAt,
    pub nr_nodes: extern "C" fn(&Core) -> u32,
    pub cpu_node: extern "C" fn(&Core, i32) -> i32,
    pub cpu_capacity: extern "C" fn(&Core, i32) -> u32,
    pub dispatch_slots: extern "C" fn(&Core) -> u32,
    pub dispatch_cancel: extern "C" fn(&Core),
    pub mask_create: extern "C" fn(&Core) -> usize,
    pub mask_hold: extern "C" fn(&Core, usize, i32),
    pub mask_of_all: extern "C" fn(&Core) -> usize,
    pub idle_mask_of_node: extern "C" fn(&Core, u8, i32) -> usize,
    pub pick_idle_cpu_node: extern "C" fn(&Core, Any, i32, u64) -> i32,
}

/// `struct scx_callbacks`: the callbacks of a `struct sched_ext_ops`. Those of a loaded program take
/// what is in its memory; the kernel here never calls those that are marked unsafe.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Callbacks {
    pub select_cpu: Option<extern "C" fn(TaskAt, i32, u64) -> i32>,
    pub enqueue: Option<extern "C" fn(TaskAt, u64)>,
    pub dequeue: Option<unsafe extern "C" fn(TaskAt, u64)>,
    pub dispatch: Option<extern "C" fn(i32, TaskAt)>,
    pub tick: Option<extern "C" fn(TaskAt)>,
    pub runnable: Option<extern "C" fn(TaskAt, u64)>,
    pub running: Option<extern "C" fn(TaskAt)>,
    pub stopping: Option<extern "C" fn(TaskAt, u8)>,
    pub quiescent: Option<extern "C" fn(TaskAt, u64)>,
    pub yields: Option<extern "C" fn(TaskAt, TaskAt) -> u8>,
    pub set_weight: Option<extern "C" fn(TaskAt, u32)>,
    pub set_cpumask: Option<extern "C" fn(TaskAt, MaskAt)>,
    pub update_idle: Option<extern "C" fn(i32, u8)>,
    pub cpu_acquire: Option<unsafe extern "C" fn(i32, *mut c_void)>,
    pub cpu_release: Option<unsafe extern "C" fn(i32, *mut c_void)>,
    pub init_task: Option<extern "C" fn(TaskAt, u8, CgroupAt) -> i32>,
    pub exit_task: Option<extern "C" fn(TaskAt)>,
    pub enable: Option<extern "C" fn(TaskAt)>,
    pub disable: Option<extern "C" fn(TaskAt)>,
    pub cgroup_init: Option<extern "C" fn(CgroupAt, u32) -> i32>,
    pub cgroup_exit: Option<unsafe extern "C" fn(CgroupAt)>,
    pub cgroup_move: Option<unsafe extern "C" fn(TaskAt, CgroupAt, CgroupAt)>,
    pub cgroup_set_weight: Option<unsafe extern "C" fn(CgroupAt, u32)>,
    pub init: Option<extern "C" fn() -> i32>,
    pub exit: Option<unsafe extern "C" fn(i32, u64, *const c_char, *const c_char)>,
    pub flags: u64,
    pub dispatch_max_batch: u32,
    pub timeout_ms: u32,
    pub name: [c_char; 128],
}

impl Default for Callbacks {
    fn default() -> Callbacks {
        // SAFETY: a null function pointer is `None`, and all else is numbers.
        unsafe { std::mem::zeroed() }
    }
}

/// A place in one of the program's structures that the program does not have.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// `struct scx_layout`: where the program's structures have what the kernel writes, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[rustfmt::skip]
#[allow(missing_docs)]
pub(crate) struct Layout {
    pub task_size: u32, pub rq_size: u32, pub cgroup_size: u32, pub kernfs_node_size: u32,
    pub css_set_size: u32,
    pub flags: u32, pub policy: u32, pub static_prio: u32, pub nr_cpus_allowed: u32,
    pub cpus_ptr: u32, pub sum_exec_runtime: u32,
    pub scx_flags: u32, pub scx_weight: u32, pub scx_slice: u32, pub scx_dsq_vtime: u32,
    pub scx_runnable_at: u32,
    pub pid: u32, pub tgid: u32, pub cgroups: u32, pub comm: u32,
    pub nr_running: u32, pub online: u32, pub curr: u32, pub idle: u32, pub idle_state: u32,
    pub idle_state_size: u32, pub exit_latency_ns: u32,
    pub kn: u32, pub level: u32, pub ancestors: u32,
    pub kn_name: u32, pub kn_id: u32, pub dfl_cgrp: u32,
    pub mm: u32, pub group_leader: u32, pub real_parent: u32, pub parent: u32, pub prio: u32,
    pub normal_prio: u32,
    pub mm_size: u32, pub cpumask_size: u32,
}

/// The functions that a shared object exports.
pub(crate) type Bind = unsafe extern "C" fn(*const KernelCalls);
pub(crate) type FindCallbacks = unsafe extern "C" fn(*const c_char, *mut Callbacks) -> i32;
pub(crate) type SetUclamp = unsafe extern "C" fn(TaskAt, u32, u32);
pub(crate) type TimerExpired = unsafe extern "C" fn(*mut c_void);

/// Numbers of sched_ext's interface, as the kernel's headers have them.
pub(crate) mod flag {
    pub const DSQ_BUILTIN: u64 = 1 << 63;
    pub const DSQ_LOCAL_ON: u64 = 1 << 62;
    pub const DSQ_GLOBAL: u64 = DSQ_BUILTIN | 1;
    pub const DSQ_LOCAL: u64 = DSQ_BUILTIN | 2;

    pub const SLICE_DFL: u64 = 20_000_000;
    pub const SLICE_INF: u64 = u64::MAX;

    pub const OPS_KEEP_BUILTIN_IDLE: u64 = 1;
    pub const OPS_ENQ_LAST: u64 = 1 << 1;
    pub const OPS_ALLOW_QUEUED_WAKEUP: u64 = 1 << 5;

    pub const ENQ_WAKEUP: u64 = 1;
    pub const ENQ_HEAD: u64 = 0x10;
    pub const ENQ_CPU_SELECTED: u64 = 1 << 10;
    pub const ENQ_PREEMPT: u64 = 1 << 32;
    pub const ENQ_IMMED: u64 = 1 << 33;
    pub const ENQ_REENQ: u64 = 1 << 40;
    pub const ENQ_LAST: u64 = 1 << 41;

    pub const DEQ_SLEEP: u64 = 1;

    pub const WAKE_FORK: u64 = 4;
    pub const WAKE_TTWU: u64 = 8;
    pub const WAKE_SYNC: u64 = 16;

    pub const KICK_IDLE: u64 = 1;
    pub const KICK_PREEMPT: u64 = 2;

    pub const PICK_IDLE_CORE: u64 = 1;
    pub const PICK_IDLE_IN_NODE: u64 = 2;

    pub const ITER_REV: u64 = 1 << 16;

    pub const TASK_QUEUED: u32 = 1;

    pub const PF_IDLE: u32 = 0x2;
    pub const PF_KTHREAD: u32 = 0x0020_0000;
}

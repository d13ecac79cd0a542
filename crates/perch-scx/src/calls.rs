// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's functions, as the program calls them through [`KernelCalls`].
//!
//! The program passes on what the kernel has given it: pointers to its tasks and cgroups, and to
//! memory of its own that is as long as the interface says. A pointer to anything else ends the
//! program where that can be seen.
#![allow(clippy::undocumented_unsafe_blocks)]

use std::ffi::{CStr, c_char, c_void};

use perch_engine::TaskId;

use crate::abi::{KernelCalls, MapType};
use crate::core::Core;

type Of = *mut c_void;
type Any = *const c_void;

/// The functions for `core`, which must outlive every call.
pub(crate) fn table(core: &Core, nr_cpus: usize) -> KernelCalls {
    KernelCalls {
        of: std::ptr::from_ref(core).cast_mut().cast(),
        rqs: core.memory.rqs(),
        nr_cpus: nr_cpus as u32,
        now,
        this_cpu,
        random,
        current,
        error,
        task_cpu,
        task_cgroup,
        cgroup_ancestor,
        create_dsq,
        destroy_dsq,
        dsq_nr_queued,
        dsq_insert,
        dsq_insert_vtime,
        dsq_move_to_local,
        iter_new,
        iter_next,
        iter_destroy,
        move_set_slice,
        move_set_vtime,
        dsq_move,
        reenqueue_local,
        kick_cpu,
        idle_mask,
        test_and_clear_cpu_idle,
        pick_idle_cpu,
        pick_any_cpu,
        select_cpu,
        map_lookup,
        map_update,
        map_delete,
        map_push,
        map_pop,
        storage_get,
        storage_delete,
        timer_start,
        line,
        claim_lost,
        timer_cancel,
        map_key,
        task_of_pid,
        cgroup_of_id,
        nr_nodes,
        cpu_node,
        cpu_capacity,
        dispatch_slots,
        dispatch_cancel,
        mask_create,
        mask_hold,
        mask_of_all,
        idle_mask_of_node,
        pick_idle_cpu_node,
    }
}

unsafe fn core<'c>(of: Of) -> &'c Core {
    // `table` has put it there.
    unsafe { &*of.cast::<Core>() }
}

/// The task at this address, which the program uses in `what`.
fn task(core: &Core, at: Any, what: &str) -> Option<TaskId> {
    let task = core.memory.task_at(at);
    if task.is_none() {
        core.end(format!("{what}: {at:p} is no task of the scheduler's"));
    }
    task
}

unsafe fn bytes<'b>(at: Any, len: u32) -> &'b [u8] {
    unsafe { std::slice::from_raw_parts(at.cast(), len as usize) }
}

unsafe extern "C" fn now(of: Of) -> u64 {
    unsafe { core(of) }.now_ns()
}

unsafe extern "C" fn this_cpu(of: Of) -> u32 {
    unsafe { core(of) }.here() as u32
}

unsafe extern "C" fn random(of: Of) -> u32 {
    unsafe { core(of) }.random()
}

unsafe extern "C" fn current(of: Of) -> *mut c_void {
    let core = unsafe { core(of) };
    let here = core.here();
    match core.kernel(|kernel| kernel.current(here)) {
        Some(task) => core.memory.task(task),
        None => core.memory.idle_task(here),
    }
}

unsafe extern "C" fn error(of: Of, message: *const c_char) {
    let message = unsafe { CStr::from_ptr(message) };
    unsafe { core(of) }.end(message.to_string_lossy().into_owned());
}

unsafe extern "C" fn task_cpu(of: Of, at: Any) -> i32 {
    let core = unsafe { core(of) };
    if let Some(cpu) = core.memory.idle_at(at) {
        return cpu as i32;
    }
    match task(core, at, "scx_bpf_task_cpu()") {
        Some(task) => core.kernel(|kernel| kernel.cpu_of(task)) as i32,
        None => -1,
    }
}

unsafe extern "C" fn task_cgroup(of: Of, at: Any) -> *mut c_void {
    let core = unsafe { core(of) };
    match task(core, at, "scx_bpf_task_cgroup()") {
        Some(task) => core.memory.cgroup_of(task),
        None => core.memory.cgroup(0),
    }
}

unsafe extern "C" fn cgroup_ancestor(of: Of, cgroup: *mut c_void, level: i32) -> *mut c_void {
    unsafe { core(of) }.memory.ancestor(cgroup, level)
}

unsafe extern "C" fn create_dsq(of: Of, dsq: u64, _node: i32) -> i32 {
    unsafe { core(of) }.create_dsq(dsq)
}

unsafe extern "C" fn destroy_dsq(of: Of, dsq: u64) {
    unsafe { core(of) }.destroy_dsq(dsq);
}

unsafe extern "C" fn dsq_nr_queued(of: Of, dsq: u64) -> i32 {
    unsafe { core(of) }.nr_queued(dsq)
}

unsafe extern "C" fn dsq_insert(of: Of, at: *mut c_void, dsq: u64, slice: u64, flags: u64) -> u8 {
    let core = unsafe { core(of) };
    let task = task(core, at, "scx_bpf_dsq_insert()");
    task.is_some_and(|task| core.insert(task, dsq, slice, flags, None))
        .into()
}

unsafe extern "C" fn dsq_insert_vtime(
    of: Of,
    at: *mut c_void,
    dsq: u64,
    slice: u64,
    vtime: u64,
    flags: u64,
) -> u8 {
    let core = unsafe { core(of) };
    let task = task(core, at, "scx_bpf_dsq_insert_vtime()");
    task.is_some_and(|task| core.insert(task, dsq, slice, flags, Some(vtime)))
        .into()
}

unsafe extern "C" fn dsq_move_to_local(of: Of, dsq: u64, _flags: u64) -> u8 {
    unsafe { core(of) }.dsq_move_to_local(dsq).into()
}

unsafe fn iterator<'i>(it: *mut u64) -> &'i mut [u64; 6] {
    unsafe { &mut *it.cast::<[u64; 6]>() }
}

unsafe extern "C" fn iter_new(of: Of, it: *mut u64, dsq: u64, flags: u64) -> i32 {
    unsafe { core(of).iter_new(iterator(it), dsq, flags) }
}

unsafe extern "C" fn iter_next(of: Of, it: *mut u64) -> *mut c_void {
    let core = unsafe { core(of) };
    match core.iter_next(unsafe { iterator(it) }) {
        Some(task) => core.memory.task(task),
        None => std::ptr::null_mut(),
    }
}

unsafe extern "C" fn iter_destroy(_: Of, _: *mut u64) {}

unsafe extern "C" fn move_set_slice(of: Of, it: *mut u64, slice: u64) {
    unsafe { core(of).move_set_slice(iterator(it), slice) }
}

unsafe extern "C" fn move_set_vtime(of: Of, it: *mut u64, vtime: u64) {
    unsafe { core(of).move_set_vtime(iterator(it), vtime) }
}

unsafe extern "C" fn dsq_move(
    of: Of,
    it: *mut u64,
    at: *mut c_void,
    dsq: u64,
    flags: u64,
    by_vtime: u8,
) -> u8 {
    let core = unsafe { core(of) };
    let it = unsafe { iterator(it) };
    let task = task(core, at, "scx_bpf_dsq_move()");
    task.is_some_and(|task| core.dsq_move(it, task, dsq, flags, by_vtime != 0))
        .into()
}

unsafe extern "C" fn reenqueue_local(of: Of) -> u32 {
    unsafe { core(of) }.reenqueue_local()
}

unsafe extern "C" fn kick_cpu(of: Of, cpu: i32, flags: u64) {
    unsafe { core(of) }.kick(cpu, flags);
}

unsafe extern "C" fn idle_mask(of: Of, of_cores: u8) -> Any {
    let state = unsafe { core(of) }.state();
    state.idle.words(of_cores != 0).as_ptr().cast()
}

unsafe extern "C" fn test_and_clear_cpu_idle(of: Of, cpu: i32) -> u8 {
    unsafe { core(of) }.claim_idle(cpu).into()
}

/// The words of a mask; all CPUs without one.
unsafe fn words(core: &Core, mask: Any) -> Vec<u64> {
    let n = core.nr_cpus();
    let word = |at: usize| match mask.is_null() {
        true if n >= (at + 1) * 64 => u64::MAX,
        true => (1 << (n % 64)) - 1,
        false => unsafe { mask.cast::<u64>().add(at).read() },
    };
    (0..n.div_ceil(64)).map(word).collect()
}

/// EBUSY where there is none.
fn number(cpu: Option<usize>) -> i32 {
    cpu.map_or(-16, |cpu| cpu as i32)
}

unsafe extern "C" fn pick_idle_cpu(of: Of, mask: Any, flags: u64) -> i32 {
    let core = unsafe { core(of) };
    let words = unsafe { words(core, mask) };
    number(core.pick_idle(&words, flags))
}

unsafe extern "C" fn pick_any_cpu(of: Of, mask: Any, flags: u64) -> i32 {
    let core = unsafe { core(of) };
    let words = unsafe { words(core, mask) };
    number(
        core.pick_idle(&words, flags)
            .or_else(|| core.pick_any(&words)),
    )
}

unsafe extern "C" fn select_cpu(
    of: Of,
    at: Any,
    prev: i32,
    wake_flags: u64,
    mask: Any,
    flags: u64,
) -> i32 {
    let core = unsafe { core(of) };
    let Some(task) = task(core, at, "scx_bpf_select_cpu_dfl()") else {
        return -22;
    };
    let among = (!mask.is_null()).then(|| unsafe { words(core, mask) });
    number(core.select_builtin(
        task,
        prev.max(0) as usize,
        wake_flags,
        among.as_deref(),
        flags,
    ))
}

unsafe extern "C" fn map_lookup(
    of: Of,
    map: Any,
    is: *const MapType,
    key: Any,
    cpu: i32,
) -> *mut c_void {
    let core = unsafe { core(of) };
    let is = unsafe { &*is };
    let cpu = usize::try_from(cpu).unwrap_or_else(|_| core.here());
    let key = unsafe { bytes(key, is.key_size) };
    core.state().maps.lookup(map as usize, is, key, cpu).cast()
}

unsafe extern "C" fn map_update(
    of: Of,
    map: Any,
    is: *const MapType,
    key: Any,
    value: Any,
    flags: u64,
) -> i32 {
    let core = unsafe { core(of) };
    let is = unsafe { &*is };
    let (key, value) = unsafe { (bytes(key, is.key_size), bytes(value, is.value_size)) };
    let here = core.here();
    core.state()
        .maps
        .update(map as usize, is, key, value, (flags, here))
}

unsafe extern "C" fn map_delete(of: Of, map: Any, is: *const MapType, key: Any) -> i32 {
    let is = unsafe { &*is };
    let key = unsafe { bytes(key, is.key_size) };
    unsafe { core(of) }
        .state()
        .maps
        .delete(map as usize, is, key)
}

unsafe extern "C" fn map_push(of: Of, map: Any, is: *const MapType, value: Any) -> i32 {
    let is = unsafe { &*is };
    let value = unsafe { bytes(value, is.value_size) };
    unsafe { core(of) }
        .state()
        .maps
        .push(map as usize, is, value)
}

unsafe extern "C" fn map_pop(of: Of, map: Any, is: *const MapType, value: *mut c_void) -> i32 {
    let is = unsafe { &*is };
    match unsafe { core(of) }.state().maps.pop(map as usize, is) {
        Some(bytes) => {
            unsafe {
                value
                    .cast::<u8>()
                    .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
            };
            0
        }
        None => -2,
    }
}

unsafe extern "C" fn storage_get(
    of: Of,
    map: Any,
    is: *const MapType,
    owner: Any,
    first: Any,
    flags: u64,
) -> *mut c_void {
    let is = unsafe { &*is };
    let first = (!first.is_null()).then(|| unsafe { bytes(first, is.value_size) });
    let mut state = unsafe { core(of) }.state();
    state
        .maps
        .storage(map as usize, is, owner as usize, first, flags)
        .cast()
}

unsafe extern "C" fn storage_delete(of: Of, map: Any, owner: Any) -> i32 {
    unsafe { core(of) }
        .state()
        .maps
        .delete_storage(map as usize, owner as usize)
}

/// `BPF_F_TIMER_ABS`.
const TIMER_ABS: u64 = 1;

unsafe extern "C" fn timer_start(of: Of, timer: *mut c_void, ns: u64, flags: u64) -> i32 {
    let core = unsafe { core(of) };
    let now_ns = core.now_ns();
    let at_ns = match flags & TIMER_ABS {
        0 => now_ns.saturating_add(ns),
        _ => ns.max(now_ns),
    };
    core.start_timer(timer as usize, at_ns);
    0
}

unsafe extern "C" fn line(of: Of, at: Any, writes: u8) {
    unsafe { core(of) }.charge_line(at as usize, writes != 0);
}

unsafe extern "C" fn claim_lost(of: Of) -> u8 {
    unsafe { core(of) }.loses_claim().into()
}

unsafe extern "C" fn timer_cancel(of: Of, timer: *mut c_void) -> i32 {
    unsafe { core(of) }.cancel_timer(timer as usize).into()
}

/// The longest key that [`map_key`] writes.
const LONGEST_KEY: usize = 64;

unsafe extern "C" fn map_key(of: Of, map: Any, at: Any, key: *mut u8) -> *mut c_void {
    let state = unsafe { core(of) }.state();
    match state.maps.key_at(map as usize, at as usize) {
        Some((bytes, value)) if bytes.len() <= LONGEST_KEY => {
            unsafe { key.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            value as *mut c_void
        }
        _ => std::ptr::null_mut(),
    }
}

unsafe extern "C" fn task_of_pid(of: Of, pid: i32) -> *mut c_void {
    let core = unsafe { core(of) };
    match core.task_of_pid(pid) {
        Some(task) => core.memory.task(task),
        None => std::ptr::null_mut(),
    }
}

unsafe extern "C" fn cgroup_of_id(of: Of, id: u64) -> *mut c_void {
    unsafe { core(of) }.memory.cgroup_of_id(id)
}

unsafe extern "C" fn nr_nodes(of: Of) -> u32 {
    let core = unsafe { core(of) };
    core.kernel(|kernel| kernel.topology().nr_nodes()) as u32
}

/// The CPU, if there is one of this number; the program ends otherwise.
fn cpu(core: &Core, cpu: i32) -> Option<usize> {
    let found = usize::try_from(cpu)
        .ok()
        .filter(|&cpu| cpu < core.nr_cpus());
    if found.is_none() {
        core.end(format!("invalid CPU {cpu}"));
    }
    found
}

unsafe extern "C" fn cpu_node(of: Of, number: i32) -> i32 {
    let core = unsafe { core(of) };
    let Some(cpu) = cpu(core, number) else {
        return -1;
    };
    core.kernel(|kernel| kernel.topology().node(cpu)) as i32
}

unsafe extern "C" fn cpu_capacity(of: Of, number: i32) -> u32 {
    let core = unsafe { core(of) };
    let Some(cpu) = cpu(core, number) else {
        return 1024;
    };
    core.kernel(|kernel| kernel.topology().capacity(cpu))
}

unsafe extern "C" fn dispatch_slots(of: Of) -> u32 {
    unsafe { core(of) }.dispatch_slots()
}

unsafe extern "C" fn dispatch_cancel(of: Of) {
    unsafe { core(of) }.dispatch_cancel();
}

unsafe extern "C" fn mask_create(of: Of) -> *mut c_void {
    unsafe { core(of) }.mask_create() as *mut c_void
}

unsafe extern "C" fn mask_hold(of: Of, mask: *mut c_void, more: i32) {
    unsafe { core(of) }.mask_hold(mask as usize, more);
}

unsafe extern "C" fn mask_of_all(of: Of) -> Any {
    unsafe { core(of) }.mask_of_all() as Any
}

unsafe extern "C" fn idle_mask_of_node(of: Of, of_cores: u8, node: i32) -> Any {
    unsafe { core(of) }.idle_mask_of_node(of_cores != 0, node) as Any
}

unsafe extern "C" fn pick_idle_cpu_node(of: Of, mask: Any, node: i32, flags: u64) -> i32 {
    let core = unsafe { core(of) };
    let words = unsafe { words(core, mask) };
    number(core.pick_idle_of_node(&words, node, flags))
}

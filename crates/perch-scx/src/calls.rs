// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's functions, as the program calls them through [`KernelCalls`].
//!
//! The program passes on what the kernel has given it: pointers to its tasks and cgroups, and to
//! memory of its own that is as long as the interface says. A pointer to anything else ends the
//! program where that can be seen.
#![allow(clippy::undocumented_unsafe_blocks)]

use std::ffi::{CStr, c_char, c_void};
use std::fmt::Arguments;

use perch_engine::TaskId;

use crate::abi::{KernelCalls, MapType, flag};
use crate::core::{Core, Walk, of_node};
use crate::memory::{CgroupAt, TaskAt};

type Any = *const c_void;

/// The functions for `core`, which must outlive every call.
#[rustfmt::skip]
pub(crate) fn table(core: &Core) -> KernelCalls {
    KernelCalls {
        core,
        rqs: core.memory.rqs(),
        nr_cpus: core.nr_cpus as u32,
        now, this_cpu, random, current, error, task_cpu, task_cgroup, cgroup_ancestor,
        create_dsq, destroy_dsq, dsq_nr_queued, dsq_insert, dsq_insert_vtime,
        dsq_move_to_local, iter_new, iter_next, iter_destroy, move_set_slice,
        move_set_vtime, dsq_move, reenqueue_local, kick_cpu, idle_mask,
        test_and_clear_cpu_idle, pick_idle_cpu, pick_any_cpu, select_cpu, map_lookup,
        map_update, map_delete, map_push, map_pop, storage_get, storage_delete,
        timer_start, line, claim_lost, timer_cancel, map_key, task_of_pid, cgroup_of_id,
        nr_nodes, cpu_node, cpu_capacity, dispatch_slots, dispatch_cancel, mask_create,
        mask_hold, mask_of_all, idle_mask_of_node, pick_idle_cpu_node,
    }
}

/// The task at this address, which the program uses in `what`.
fn task(core: &Core, at: Any, what: &str) -> Option<TaskId> {
    let task = core.memory.task_at(at);
    core.or_end(task.ok_or_else(|| format!("{what}: {at:p} is not a task of this scheduler")))
}

/// A number that must be below `n`; the program ends otherwise.
fn below(core: &Core, n: usize, number: i32, what: Arguments<'_>) -> Option<usize> {
    let number = usize::try_from(number).ok().filter(|&number| number < n);
    core.or_end(number.ok_or_else(|| format!("invalid {what}")))
}

fn cpu(core: &Core, number: i32) -> Option<usize> {
    below(core, core.nr_cpus, number, format_args!("CPU {number}"))
}

unsafe fn bytes<'b>(at: Any, len: u32) -> &'b [u8] {
    unsafe { std::slice::from_raw_parts(at.cast(), len as usize) }
}

extern "C" fn now(core: &Core) -> u64 {
    core.now_ns()
}

extern "C" fn this_cpu(core: &Core) -> u32 {
    core.here() as u32
}

extern "C" fn random(core: &Core) -> u32 {
    core.random.borrow_mut().below(1 << 32) as u32
}

extern "C" fn current(core: &Core) -> TaskAt {
    let (here, current) = core.kernel.ask(|k| (k.here(), k.current(k.here())));
    core.memory.current(here, current)
}

extern "C" fn error(core: &Core, message: *const c_char) {
    let message = unsafe { CStr::from_ptr(message) };
    core.end(message.to_string_lossy().into_owned());
}

extern "C" fn task_cpu(core: &Core, at: Any) -> i32 {
    if let Some(cpu) = core.memory.idle_at(at) {
        return cpu as i32;
    }
    match task(core, at, "scx_bpf_task_cpu()") {
        Some(task) => core.kernel.ask(|kernel| kernel.cpu_of(task)) as i32,
        None => -1,
    }
}

extern "C" fn task_cgroup(core: &Core, at: Any) -> CgroupAt {
    match task(core, at, "scx_bpf_task_cgroup()") {
        Some(task) => core.memory.cgroup_of(task),
        None => core.memory.cgroups.at(0),
    }
}

extern "C" fn cgroup_ancestor(core: &Core, cgroup: Any, level: i32) -> CgroupAt {
    core.memory.cgroups.ancestor(cgroup, level)
}

extern "C" fn create_dsq(core: &Core, dsq: u64, _node: i32) -> i32 {
    core.queues.borrow_mut().create(dsq)
}

extern "C" fn destroy_dsq(core: &Core, dsq: u64) {
    core.or_end(core.queues.borrow_mut().destroy(dsq));
}

extern "C" fn dsq_nr_queued(core: &Core, dsq: u64) -> i32 {
    core.queues.borrow().nr_queued(dsq, core.here())
}

extern "C" fn dsq_insert(core: &Core, at: Any, dsq: u64, slice: u64, flags: u64) -> u8 {
    let task = task(core, at, "scx_bpf_dsq_insert()");
    task.is_some_and(|task| core.insert(task, dsq, slice, flags, None)).into()
}

extern "C" fn dsq_insert_vtime(
    core: &Core,
    at: Any,
    dsq: u64,
    slice: u64,
    vtime: u64,
    flags: u64,
) -> u8 {
    let task = task(core, at, "scx_bpf_dsq_insert_vtime()");
    task.is_some_and(|task| core.insert(task, dsq, slice, flags, Some(vtime))).into()
}

extern "C" fn dsq_move_to_local(core: &Core, dsq: u64, _flags: u64) -> u8 {
    let moved = core.or_end(core.dsq_move_to_local(dsq));
    (moved == Some(true)).into()
}

extern "C" fn iter_new(core: &Core, walk: &mut Walk, dsq: u64, flags: u64) -> i32 {
    walk.begin(&core.queues.borrow(), dsq, flags)
}

extern "C" fn iter_next(core: &Core, walk: &mut Walk) -> TaskAt {
    let next = walk.next(&core.queues.borrow());
    next.map_or(TaskAt::NONE, |task| core.memory.task(task))
}

extern "C" fn iter_destroy(_: &Core, _: &mut Walk) {}

extern "C" fn move_set_slice(_: &Core, walk: &mut Walk, slice: u64) {
    walk.set_slice(slice);
}

extern "C" fn move_set_vtime(_: &Core, walk: &mut Walk, vtime: u64) {
    walk.set_vtime(vtime);
}

extern "C" fn dsq_move(
    core: &Core,
    walk: &mut Walk,
    at: Any,
    dsq: u64,
    flags: u64,
    by_vtime: u8,
) -> u8 {
    let task = task(core, at, "scx_bpf_dsq_move()");
    let moved = task.map(|task| core.dsq_move(walk, task, dsq, flags, by_vtime != 0));
    (moved.and_then(|moved| core.or_end(moved)) == Some(true)).into()
}

extern "C" fn reenqueue_local(core: &Core) -> u32 {
    core.reenqueue_local()
}

extern "C" fn kick_cpu(core: &Core, number: i32, flags: u64) {
    let what = format_args!("CPU {number} to kick");
    let Some(cpu) = below(core, core.nr_cpus, number, what) else {
        return;
    };
    let (current, runs_ext) = (core.kernel).ask(|k| (k.current(cpu), k.runs_ext(cpu)));
    if flags & flag::KICK_IDLE != 0 && current.is_some() {
        return;
    }
    if let Some(current) = current.filter(|_| flags & flag::KICK_PREEMPT != 0 && runs_ext) {
        core.memory.put_slice(current, 0);
    }
    let late_ns = core.faults.borrow_mut().late_ns();
    core.kernel.ask(|kernel| kernel.kick(cpu, late_ns));
}

extern "C" fn idle_mask(core: &Core, of_cores: u8) -> Any {
    let idle = core.idle.borrow();
    idle.words(of_cores != 0).as_ptr().cast()
}

extern "C" fn test_and_clear_cpu_idle(core: &Core, number: i32) -> u8 {
    let Some(cpu) = cpu(core, number) else {
        return 0;
    };
    core.charge_idle_line(cpu);
    // Another CPU may have been faster.
    let lost = core.faults.borrow_mut().loses_claim();
    (!lost && (core.kernel).ask(|k| core.idle.borrow_mut().claim(k.topology(), cpu))).into()
}

/// The words of a mask; all CPUs without one.
unsafe fn words(core: &Core, mask: Any) -> Vec<u64> {
    let n = core.nr_cpus;
    let word = |at: usize| match mask.is_null() {
        true if n >= (at + 1) * 64 => u64::MAX,
        true => (1 << (n % 64)) - 1,
        false => unsafe { mask.cast::<u64>().add(at).read() },
    };
    (0..n.div_ceil(64)).map(word).collect()
}

const EBUSY: i32 = -16;

fn or_busy(cpu: Option<usize>) -> i32 {
    cpu.map_or(EBUSY, |cpu| cpu as i32)
}

/// An idle CPU among these, claimed.
fn pick_idle(core: &Core, words: &[u64], flags: u64) -> Option<usize> {
    let (mut idle, only_cores) = (core.idle.borrow_mut(), flags & flag::PICK_IDLE_CORE != 0);
    (core.kernel).ask(|k| idle.pick(k.topology(), k.here(), words, only_cores))
}

extern "C" fn pick_idle_cpu(core: &Core, mask: Any, flags: u64) -> i32 {
    let words = unsafe { words(core, mask) };
    or_busy(pick_idle(core, &words, flags))
}

extern "C" fn pick_any_cpu(core: &Core, mask: Any, flags: u64) -> i32 {
    let words = unsafe { words(core, mask) };
    let idle = pick_idle(core, &words, flags);
    let any = || core.idle.borrow_mut().pick_any(core.here(), &words);
    or_busy(idle.or_else(any))
}

extern "C" fn select_cpu(
    core: &Core,
    at: Any,
    prev: i32,
    wake_flags: u64,
    mask: Any,
    flags: u64,
) -> i32 {
    let Some(task) = task(core, at, "scx_bpf_select_cpu_dfl()") else {
        return -22;
    };
    let among = (!mask.is_null()).then(|| unsafe { words(core, mask) });
    let (prev, among) = (prev.max(0) as usize, among.as_deref());
    or_busy(core.select_idle(task, prev, wake_flags, among, flags))
}

extern "C" fn map_lookup(core: &Core, map: usize, is: &MapType, key: Any, cpu: i32) -> *mut c_void {
    let cpu = usize::try_from(cpu).unwrap_or_else(|_| core.here());
    let key = unsafe { bytes(key, is.key_size) };
    core.maps.borrow_mut().lookup(map, is, key, cpu).cast()
}

extern "C" fn map_update(
    core: &Core,
    map: usize,
    is: &MapType,
    key: Any,
    value: Any,
    flags: u64,
) -> i32 {
    let (key, value) = unsafe { (bytes(key, is.key_size), bytes(value, is.value_size)) };
    let here = core.here();
    core.maps.borrow_mut().update(map, is, key, value, (flags, here))
}

extern "C" fn map_delete(core: &Core, map: usize, is: &MapType, key: Any) -> i32 {
    let key = unsafe { bytes(key, is.key_size) };
    core.maps.borrow_mut().delete(map, is, key)
}

extern "C" fn map_push(core: &Core, map: usize, is: &MapType, value: Any) -> i32 {
    let value = unsafe { bytes(value, is.value_size) };
    core.maps.borrow_mut().push(map, is, value)
}

extern "C" fn map_pop(core: &Core, map: usize, is: &MapType, value: *mut c_void) -> i32 {
    let Some(bytes) = core.maps.borrow_mut().pop(map, is) else {
        return -2;
    };
    let value: *mut u8 = value.cast();
    unsafe { value.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    0
}

extern "C" fn storage_get(
    core: &Core,
    map: usize,
    is: &MapType,
    owner: usize,
    first: Any,
    flags: u64,
) -> *mut c_void {
    let first = (!first.is_null()).then(|| unsafe { bytes(first, is.value_size) });
    let mut maps = core.maps.borrow_mut();
    maps.storage(map, is, owner, first, flags).cast()
}

extern "C" fn storage_delete(core: &Core, map: usize, owner: usize) -> i32 {
    core.maps.borrow_mut().delete_storage(map, owner)
}

/// `BPF_F_TIMER_ABS`.
const TIMER_ABS: u64 = 1;

extern "C" fn timer_start(core: &Core, timer: usize, ns: u64, flags: u64) -> i32 {
    let now_ns = core.now_ns();
    let at_ns = match flags & TIMER_ABS {
        0 => now_ns.saturating_add(ns),
        _ => ns.max(now_ns),
    };
    let at_ns = at_ns + core.faults.borrow_mut().late_ns();
    let key = core.timers.borrow_mut().start(timer, at_ns);
    core.kernel.ask(|kernel| kernel.start_timer(at_ns, key));
    0
}

extern "C" fn line(core: &Core, at: usize, writes: u8) {
    core.charge_line(at, writes != 0);
}

extern "C" fn claim_lost(core: &Core) -> u8 {
    let mut faults = core.faults.borrow_mut();
    faults.loses_claim().into()
}

extern "C" fn timer_cancel(core: &Core, timer: usize) -> i32 {
    let mut timers = core.timers.borrow_mut();
    timers.cancel(timer, core.now_ns()).into()
}

/// The longest key that [`map_key`] writes.
const LONGEST_KEY: usize = 64;

extern "C" fn map_key(core: &Core, map: usize, at: usize, key: *mut u8) -> *mut c_void {
    let maps = core.maps.borrow();
    match maps.key_at(map, at) {
        Some((bytes, value)) if bytes.len() <= LONGEST_KEY => {
            unsafe { key.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            value as *mut c_void
        }
        _ => std::ptr::null_mut(),
    }
}

extern "C" fn task_of_pid(core: &Core, pid: i32) -> TaskAt {
    let n = core.kernel.ask(|kernel| kernel.nr_tasks());
    // Pids begin at 1.
    match usize::try_from(pid).ok().and_then(|pid| pid.checked_sub(1)) {
        Some(number) if number < n => core.memory.task(TaskId(number as u32)),
        _ => TaskAt::NONE,
    }
}

extern "C" fn cgroup_of_id(core: &Core, id: u64) -> CgroupAt {
    core.memory.cgroups.of_id(id)
}

extern "C" fn nr_nodes(core: &Core) -> u32 {
    core.kernel.ask(|kernel| kernel.topology().nr_nodes()) as u32
}

extern "C" fn cpu_node(core: &Core, number: i32) -> i32 {
    let Some(cpu) = cpu(core, number) else {
        return -1;
    };
    core.kernel.ask(|kernel| kernel.topology().node(cpu)) as i32
}

extern "C" fn cpu_capacity(core: &Core, number: i32) -> u32 {
    let Some(cpu) = cpu(core, number) else {
        return 1024;
    };
    core.kernel.ask(|kernel| kernel.topology().capacity(cpu))
}

extern "C" fn dispatch_slots(core: &Core) -> u32 {
    core.dispatches.borrow().slots()
}

extern "C" fn dispatch_cancel(core: &Core) {
    core.dispatches.borrow_mut().cancel();
}

extern "C" fn mask_create(core: &Core) -> usize {
    core.masks.borrow_mut().create()
}

extern "C" fn mask_hold(core: &Core, mask: usize, more: i32) {
    core.or_end(core.masks.borrow_mut().hold(mask, more));
}

/// Each CPU is online as long as the run lasts.
extern "C" fn mask_of_all(core: &Core) -> usize {
    let all = unsafe { words(core, std::ptr::null()) };
    core.masks.borrow_mut().lend(0, &all)
}

fn node(core: &Core, number: i32) -> Option<usize> {
    let n = core.kernel.ask(|kernel| kernel.topology().nr_nodes());
    below(core, n, number, format_args!("NUMA node {number}"))
}

/// The idle CPUs of a node, or the CPUs of its idle cores, as they are now.
extern "C" fn idle_mask_of_node(core: &Core, of_cores: u8, number: i32) -> usize {
    let node = node(core, number).unwrap_or(0);
    let all = core.idle.borrow().words(of_cores != 0).to_vec();
    let own = core.kernel.ask(|kernel| of_node(kernel.topology(), &all, node));
    let lent = 1 + 2 * node + usize::from(of_cores != 0);
    core.masks.borrow_mut().lend(lent, &own)
}

/// An idle CPU of this node, or of another one unless the flags forbid it.
extern "C" fn pick_idle_cpu_node(core: &Core, mask: Any, number: i32, flags: u64) -> i32 {
    let all = unsafe { words(core, mask) };
    let Some(node) = node(core, number) else {
        return EBUSY;
    };
    let own = core.kernel.ask(|kernel| of_node(kernel.topology(), &all, node));
    let near = pick_idle(core, &own, flags);
    or_busy(match flags & flag::PICK_IDLE_IN_NODE {
        0 => near.or_else(|| pick_idle(core, &all, flags)),
        _ => near,
    })
}

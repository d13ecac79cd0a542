// SPDX-License-Identifier: GPL-2.0-or-later
//! Counters of CPUs with waiting real-time tasks (policy/include/perch/overload.h): raised and
//! lowered by those CPUs, read by each that looks for a task to pull.

use std::alloc::{alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::fmt;
use std::ptr::with_exposed_provenance;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::ffi;
use crate::ffi::generated::{
    PERCH_NR_OVERLOAD_LAYOUTS, PERCH_OVERLOAD_LLC_PADDED, PERCH_OVERLOAD_MORE, PERCH_OVERLOAD_NODE,
    PERCH_OVERLOAD_NODE_PADDED, PERCH_OVERLOAD_NONE, PERCH_OVERLOAD_ONE, PERCH_OVERLOAD_SHARED,
};
use crate::mode::{Mode, ParseError};
use crate::topology::Topology;

/// How the counters lie in memory; `enum perch_overload_layout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Layout {
    /// One for all CPUs, as Linux has it up to 7.2.
    Shared = PERCH_OVERLOAD_SHARED,
    /// One for each node, eight bytes each, as in the posted patch.
    Node = PERCH_OVERLOAD_NODE,
    /// One for each node, each on cache lines of its own.
    NodePadded = PERCH_OVERLOAD_NODE_PADDED,
    /// One for each last-level cache, each on cache lines of its own: the reviewers of the patch
    /// asked for it.
    LlcPadded = PERCH_OVERLOAD_LLC_PADDED,
}

const _: () = assert!(Layout::ALL.len() == PERCH_NR_OVERLOAD_LAYOUTS as usize);

impl Layout {
    /// Every layout, in the order of their numbers.
    pub const ALL: [Layout; 4] =
        [Layout::Shared, Layout::Node, Layout::NodePadded, Layout::LlcPadded];

    /// The word that `overload-layout=` takes.
    pub fn name(self) -> &'static str {
        ["shared", "node", "node-padded", "llc-padded"][self as usize]
    }

    /// The layout of a mode whose user names none. Linux 7.2 never took the patch: `upstream` is
    /// `off`.
    pub fn of(mode: Mode) -> Layout {
        match mode {
            Mode::Off | Mode::Upstream => Layout::Shared,
            Mode::Posted => Layout::Node,
            Mode::Perch => Layout::NodePadded,
        }
    }

    /// True if each counter has cache lines of its own.
    pub fn padded(self) -> bool {
        matches!(self, Layout::NodePadded | Layout::LlcPadded)
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Layout {
    type Err = ParseError;

    fn from_str(s: &str) -> Result<Layout, ParseError> {
        let found = Layout::ALL.into_iter().find(|l| l.name() == s);
        found.ok_or_else(|| {
            ParseError(format!(
                "unknown layout of overload counters \"{s}\": expected shared, node, \
                 node-padded or llc-padded"
            ))
        })
    }
}

/// How many CPUs are overloaded, as exactly as a reader needs it; `enum perch_overload_level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Level {
    /// No CPU.
    None = PERCH_OVERLOAD_NONE,
    /// One CPU.
    One = PERCH_OVERLOAD_ONE,
    /// Several; or, with exact reads, too much is going on to tell.
    More = PERCH_OVERLOAD_MORE,
}

/// The answer that a reader gets, and the number of counters that it read for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// How many CPUs are overloaded.
    pub level: Level,
    /// Loads of counters: the reader's own, the ones after it, from the last on to the first. A
    /// second round goes on in the same order.
    pub loads: u32,
}

/// A counter could not be allocated; nothing is left of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no memory for the counters of overloaded CPUs")
    }
}

impl std::error::Error for OutOfMemory {}

/// The allocator of the counters.
///
/// # Safety
/// A block is as long as asked for, aligned, writable from every thread, and belongs to its caller
/// alone until it is given back.
pub unsafe trait Memory: Send + Sync {
    /// `bytes` bytes at a multiple of `align`, a power of two, near `node`; null when there are
    /// none.
    fn alloc(&mut self, bytes: usize, align: usize, node: usize) -> *mut u8;

    /// Takes a block back.
    ///
    /// # Safety
    /// It came from `alloc` with the same length and alignment, and was not given back.
    unsafe fn free(&mut self, block: *mut u8, bytes: usize, align: usize);
}

/// The process's own allocator, which knows of no nodes.
struct Heap;

fn layout(bytes: usize, align: usize) -> std::alloc::Layout {
    std::alloc::Layout::from_size_align(bytes, align).expect("a power of two")
}

// SAFETY: the global allocator's blocks are.
unsafe impl Memory for Heap {
    fn alloc(&mut self, bytes: usize, align: usize, _node: usize) -> *mut u8 {
        // SAFETY: no block is empty.
        unsafe { alloc_zeroed(layout(bytes, align)) }
    }

    unsafe fn free(&mut self, block: *mut u8, bytes: usize, align: usize) {
        // SAFETY: the caller's word.
        unsafe { dealloc(block, layout(bytes, align)) }
    }
}

/// A CPU's own record: the counter that it raised, plus 1. It has lines of its own, so that a
/// measurement of the counters measures nothing else.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Mark(AtomicU32);

/// The counters of all CPUs of a machine.
///
/// Any thread may stand for any CPU, but only one at a time for each: `set` and `clear` take turns
/// on a CPU, as they do under its run queue's lock.
pub struct Overload {
    /// The address in it leads to the table of counters, which C writes and reads by atomic
    /// instructions only.
    raw: ffi::Overload,
    memory: Box<dyn Memory>,
    marks: Box<[Mark]>,
    homes: Box<[u32]>,
}

impl fmt::Debug for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overload")
            .field("layout", &self.layout())
            .field("exact", &self.exact())
            .field("counters", &self.counters())
            .finish()
    }
}

unsafe extern "C" fn alloc(context: *mut c_void, bytes: u64, align: u64, node: u32) -> *mut c_void {
    // SAFETY: `call` passes a pointer to its memory, which lives as long as the call.
    let memory = unsafe { &mut *context.cast::<&mut dyn Memory>() };
    memory.alloc(bytes as usize, align as usize, node as usize).cast()
}

unsafe extern "C" fn free(context: *mut c_void, block: *mut c_void, bytes: u64, align: u64) {
    // SAFETY: as in `alloc`.
    let memory = unsafe { &mut *context.cast::<&mut dyn Memory>() };
    // SAFETY: policy/ gives back what it got, once.
    unsafe { memory.free(block.cast(), bytes as usize, align as usize) };
}

fn call<R>(mut memory: &mut dyn Memory, f: impl FnOnce(&ffi::OverloadMemory) -> R) -> R {
    f(&ffi::OverloadMemory {
        alloc: Some(alloc),
        free: Some(free),
        context: (&raw mut memory).cast(),
    })
}

impl Overload {
    /// The counters of a machine, all zero. `exact` is mode perch: reads are checked, and a CPU
    /// remembers which counter it raised.
    ///
    /// # Errors
    /// When memory is short.
    pub fn new(layout: Layout, exact: bool, topology: &Topology) -> Result<Overload, OutOfMemory> {
        Overload::new_in(layout, exact, topology, Box::new(Heap))
    }

    /// As [`Overload::new`], in memory of one's own.
    ///
    /// # Errors
    /// When `memory` has none left; every block that it gave is then back.
    pub fn new_in(
        layout: Layout,
        exact: bool,
        topology: &Topology,
        mut memory: Box<dyn Memory>,
    ) -> Result<Overload, OutOfMemory> {
        let home = |cpu| {
            let (node, cache) = (topology.node(cpu) as u32, topology.cache(cpu) as u32);
            // SAFETY: a function of its arguments.
            unsafe { ffi::perch_native_overload_home(layout as u32, node, cache) }
        };
        let homes: Box<[u32]> = (0..topology.nr_cpus()).map(home).collect();
        let nr = homes.iter().max().map_or(1, |last| last + 1);
        let nodes: Vec<u32> = (0..nr)
            .map(|counter| homes.iter().position(|&home| home == counter))
            .map(|cpu| cpu.map_or(0, |cpu| topology.node(cpu) as u32))
            .collect();
        let mut raw = ffi::Overload { counters: 0, nr: 0, layout: 0, exact: 0, pad: 0 };
        let failed = call(&mut *memory, |memory| {
            // SAFETY: `nodes` has `nr` entries; the callbacks are Memory's.
            unsafe {
                ffi::perch_native_overload_init(
                    &mut raw,
                    memory,
                    layout as u32,
                    exact.into(),
                    nodes.as_ptr(),
                    nr,
                )
            }
        });
        if failed != 0 {
            return Err(OutOfMemory);
        }
        Ok(Overload { raw, memory, marks: homes.iter().map(|_| Mark::default()).collect(), homes })
    }

    /// How they lie in memory.
    pub fn layout(&self) -> Layout {
        Layout::ALL[self.raw.layout as usize]
    }

    /// True if a reader checks its first round by a second one.
    pub fn exact(&self) -> bool {
        self.raw.exact != 0
    }

    /// How many there are.
    pub fn counters(&self) -> usize {
        self.raw.nr as usize
    }

    /// The counter that a CPU reads first and raises.
    pub fn home(&self, cpu: usize) -> usize {
        self.homes[cpu] as usize
    }

    /// True if the CPU is counted as overloaded.
    pub fn is_set(&self, cpu: usize) -> bool {
        self.marks[cpu].0.load(Ordering::Relaxed) != 0
    }

    /// The CPU became overloaded; which counter was written.
    ///
    /// # Panics
    /// If it is counted already.
    pub fn set(&self, cpu: usize) -> usize {
        assert!(!self.is_set(cpu), "CPU {cpu} is counted already");
        let mark = self.marks[cpu].0.as_ptr();
        // SAFETY: the counters live as long as `self`, and `home` is one of them.
        unsafe { ffi::perch_native_overload_set(&self.raw, mark, self.homes[cpu]) as usize }
    }

    /// It no longer is; which counter was written.
    ///
    /// # Panics
    /// If it is not counted.
    pub fn clear(&self, cpu: usize) -> usize {
        assert!(self.is_set(cpu), "CPU {cpu} is not counted");
        let mark = self.marks[cpu].0.as_ptr();
        // SAFETY: as in `set`; a mark names a counter.
        unsafe { ffi::perch_native_overload_clear(&self.raw, mark, self.homes[cpu]) as usize }
    }

    /// How many CPUs are overloaded, as this CPU reads it.
    pub fn read(&self, cpu: usize) -> Reading {
        let mut loads = 0;
        // SAFETY: as in `set`.
        let level =
            unsafe { ffi::perch_native_overload_read(&self.raw, self.homes[cpu], &mut loads) };
        Reading { level: [Level::None, Level::One, Level::More][level as usize], loads }
    }

    /// The present count of each counter; below zero only in mode posted, after a CPU changed its
    /// node.
    pub fn counts(&self) -> Vec<i32> {
        let table = with_exposed_provenance::<*mut u64>(self.raw.counters as usize);
        (0..self.counters())
            .map(|i| {
                // SAFETY: the table has `nr` entries, each an aligned counter that lives as long
                // as `self` and that everybody else accesses atomically too.
                let counter = unsafe { AtomicU64::from_ptr(*table.add(i)) };
                counter.load(Ordering::Acquire) as u32 as i32
            })
            .collect()
    }

    /// The CPU belongs to another counter from now on: its node changed.
    ///
    /// # Panics
    /// If there is no such counter.
    pub fn rehome(&mut self, cpu: usize, counter: usize) {
        assert!(counter < self.counters(), "there is no counter {counter}");
        self.homes[cpu] = counter as u32;
    }
}

impl Drop for Overload {
    fn drop(&mut self) {
        let raw = &mut self.raw;
        call(&mut *self.memory, |memory| {
            // SAFETY: allocated by `new_in` from the same memory, and freed here only.
            unsafe { ffi::perch_native_overload_free(raw, memory) };
        });
    }
}

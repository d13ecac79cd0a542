// SPDX-License-Identifier: GPL-2.0-only
//! Contended cache lines of the kernel: the root domain's, which CPUs of all nodes read and write.
//!
//! Who asks says which field it wants ([`Field`]), in which function ([`Symbol`]) and how
//! ([`Access`]); where a field lies is known here.

// The real-time class, which makes these accesses, comes next.
#![allow(dead_code)]

/// A field of the root domain, or what it points to (`struct root_domain`, 6.15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// How many CPUs are overloaded with real-time tasks; of several counters the one of this
    /// index.
    RtoCount(u16),
    /// The fair class's flag: some CPU has more than one runnable task.
    Overloaded,
    /// The bits that `rto_mask` points to, one for each CPU.
    RtoMask,
    /// The pointer `rto_mask` itself, which whoever asks for a bit reads first.
    RtoMaskPointer,
    /// How many CPUs have asked for tasks to be pushed.
    RtoLoopNext,
    /// Taken by who sends the first interrupt of a round.
    RtoLoopStart,
    /// The lock of a round's state.
    RtoLock,
    /// `cpupri.pri_to_cpu[i].count`: how many CPUs are at this level, 0 to 100.
    CpupriCount(u8),
    /// The bits that `cpupri.pri_to_cpu[i].mask` points to.
    CpupriMask(u8),
}

/// A kernel function that reads or writes a field, in the words of `perf c2c`: the function that
/// is left when the compiler has inlined the smaller ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Symbol {
    /// `rt_overloaded()`, and the scan that follows it.
    PullRtTask,
    /// `rt_set_overload()`.
    EnqueuePushableTask,
    /// `rt_clear_overload()`.
    DequeuePushableTask,
    /// `add_nr_running()` for a real-time task that comes.
    EnqueueTaskRt,
    /// `add_nr_running()` for those that stay when one goes: all leave the count and come back.
    DequeueTaskRt,
    /// Whether there is anything to pull.
    SchedBalanceNewidle,
    /// `add_nr_running()` for a fair task.
    EnqueueTaskFair,
    /// `add_nr_running()` for the stopper.
    EnqueueTaskStop,
    /// A pass over the widest domain, which writes the flag when it has changed.
    SchedBalanceRq,
    /// A CPU's highest priority changes.
    CpupriSet,
    /// Looking for CPUs of a lower priority.
    CpupriFind,
    /// The interrupt by which a CPU is told to push.
    RtoPushIrqWork,
}

/// What is done to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is read.
    Load,
    /// It is written: an atomic read-modify-write, or a plain store. The CPU must own the line.
    Store,
}

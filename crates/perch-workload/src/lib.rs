// SPDX-License-Identifier: GPL-2.0-or-later
//! Workloads: tasks as small programs that run, sleep and send each other messages.
//!
//! A program is a loop of operations. Nothing in it, nor in any cost, knows which mechanism is
//! on: arms of an experiment run the very same programs with the very same random numbers.
//! This crate sees machines and sets of CPUs; it never sees the simulator that runs its programs.

mod class;
mod ffmpeg;
mod group;
mod guest;
mod hackbench;
mod network;
pub mod recorded;
pub mod rtapp;
mod schbench;
mod service;
mod spec;
mod synthetic;
mod sysbench;
mod vm;
mod volano;

use std::sync::Arc;

use perch_engine::Dist;
use perch_policy::CpuMask;

pub use class::{Class, PRIORITIES};
pub use group::{DEFAULT_SHARES, GroupSpec, SHARES, check as check_groups};
pub use guest::{GuestSpec, Network, Site};
pub use spec::{COMMON_KEYS, Workload, WorkloadError, names};

/// One step of a task's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Computes for this long at full capacity, nanoseconds.
    Run(Dist),
    /// The same in a system call: it counts as the kernel's time.
    Kernel(Dist),
    /// Sleeps on a high-resolution timer, nanoseconds.
    Sleep(Dist),
    /// Sleeps until so many nanoseconds after its last such moment, of which the first is when it
    /// appeared; not at all if that is past. So a task keeps its period whatever else it does.
    Next(u64),
    /// The same of a timer that tasks may share, and that starts with the first one that uses it.
    Timer {
        /// Which.
        timer: u32,
        /// Nanoseconds.
        period: u64,
        /// One that is late keeps its moments; otherwise the next is a period from now.
        absolute: bool,
    },
    /// Puts a message of `lines` cache lines into a channel and wakes who waits there.
    Send {
        /// Which channel.
        channel: u32,
        /// Cache lines that the receiver has to fetch: payload, and the kernel's own.
        lines: u32,
        /// The sender says that it will sleep soon (WF_SYNC).
        sync: bool,
    },
    /// Writes a message to a stream socket, a channel with a bound: sleeps while it is full, and
    /// wakes who reads it in a sync wake-up.
    Write {
        /// Which channel.
        channel: u32,
        /// Cache lines that the reader has to fetch.
        lines: u32,
        /// Messages that its buffer holds. Who slept because it was full is woken when no more
        /// than a quarter of them is left.
        room: u32,
    },
    /// Takes a message out of a channel, waiting for one if need be.
    Receive {
        /// Which channel.
        channel: u32,
    },
    /// Makes a channel readable for good, in one system call: a single byte that every one of its
    /// readers polls for and none takes away. All who wait are woken, in sync wake-ups, one after
    /// the other under the lock of the wait queue, so that nobody gets the waker's CPU before the
    /// last one is up.
    Release {
        /// Which channel; it serves nothing else.
        channel: u32,
        /// How many read from it, once each.
        readers: u32,
    },
    /// A unit of the workload's work is done.
    Count,
    /// Takes the next number of a shared counter; its remainder is what the task drew.
    Draw {
        /// Which counter.
        counter: u32,
        /// The remainder is that of a division by this.
        of: u32,
    },
    /// Locks a mutex as glibc's `pthread_mutex_lock` does: free of charge but for its cache line
    /// while nobody holds it, a futex call otherwise.
    Lock {
        /// The mutex is this plus what the task drew last (0 before it drew anything).
        first: u32,
        /// Work of a futex call up to falling asleep, nanoseconds at full capacity.
        wait: Dist,
    },
    /// Unlocks it, and then wakes the first waiter if there may be one.
    Unlock {
        /// As in `Lock`.
        first: u32,
        /// Work of a futex call up to the wake-up, nanoseconds at full capacity.
        wake: Dist,
    },
    /// Posts itself to a task, by number: is put on top of that one's list and, if its word is
    /// blocked, sets that running and makes a futex call. The task's own word is blocked first.
    Post {
        /// To whom.
        to: u32,
        /// The futex call, up to the wake-up.
        call: FutexCall,
    },
    /// Waits until its own word is running, and blocks that again; it sleeps in a futex call if
    /// the word is still blocked when the kernel looks.
    WaitPosted(FutexCall),
    /// Blocks its own word, takes its whole list off, reads the clock once, and posts them all,
    /// each as in `Post` but for the list, the last one that came first.
    WakeAll(FutexCall),
    /// Puts itself on the list of a condition variable. What `pthread_cond_wait` does is this, an
    /// `Unlock`, an `Await` and a `Lock`.
    Enlist {
        /// Which.
        condition: u32,
    },
    /// Sleeps in a futex call until it was taken off that list.
    Await {
        /// Which.
        condition: u32,
        /// The futex call, up to falling asleep.
        call: FutexCall,
    },
    /// Takes the first off the list and wakes it in a futex call, unless the list is empty.
    Signal {
        /// Which.
        condition: u32,
        /// The futex call, up to the wake-up.
        call: FutexCall,
    },
    /// The same with all of the list, in one futex call.
    Broadcast {
        /// Which.
        condition: u32,
        /// The futex call, up to the first wake-up.
        call: FutexCall,
    },
    /// Comes to a barrier, under its mutex: the last one goes on elsewhere.
    Gate {
        /// The barrier's condition variable.
        condition: u32,
        /// How many come in all.
        users: u32,
        /// The operation of the last one.
        last: u32,
    },
    /// Has left a barrier, under its mutex: from then on it counts as one to come.
    Ungate {
        /// The barrier's condition variable.
        condition: u32,
    },
    /// A wake-up latency: from the clock that who posted it read to now.
    NoteLatency,
    /// A unit of the workload's work is done, and is one of its second's requests.
    NoteRequest,
    /// Takes the lock of the CPU on which it begins to, by trying until it has it; if it was moved
    /// meanwhile, gives that back and takes the lock of the CPU where it is.
    LockCpu,
    /// Unlocks it, wherever it is by now.
    UnlockCpu,
    /// Computes until so much time has passed by the clock, running or not.
    Spin(Dist),
    /// Goes over data of its own, so many cache lines, and fetches what its CPU does not have.
    Touch {
        /// How many.
        lines: u32,
    },
    /// May use other CPUs from now on, and moves to one of them if its own is none.
    Bind {
        /// Which, by their number in [`Workload::masks`].
        mask: u32,
    },
    /// Lets others on its CPU run first, as `sched_yield` of the era has it.
    Yield,
    /// Forks a task, named by its number.
    Fork(u32),
    /// Becomes another program, in a place that suits it better if there is one.
    Exec,
    /// Goes on at this operation.
    Jump(u32),
    /// Goes back to this operation until that makes so many rounds. A loop inside another one
    /// is written out: a task counts one loop at a time.
    Repeat {
        /// Where a round begins.
        to: u32,
        /// Rounds in all, at least 1.
        times: u64,
    },
    /// What is measured begins here: for a workload that is judged by its time.
    StartClock,
    /// What is measured ends here, and with it the run.
    StopClock,
    /// What is measured ends when so many tasks have come here, and with it the run.
    StopClockAfter(u32),
    /// Is a vCPU of a virtual machine: runs whoever is on it, and sleeps when the guest halts it.
    Vcpu {
        /// Which virtual machine, by its number in [`Workload::guests`].
        guest: u32,
        /// Which of its vCPUs.
        vcpu: u32,
    },
    /// Is the thread that moves a virtual machine's packets (vhost): works while there are any,
    /// and sleeps otherwise.
    Vhost {
        /// Which virtual machine.
        guest: u32,
    },
    /// Ends the task.
    Exit,
}

/// What a futex call costs that wakes or puts to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FutexCall {
    /// Its work up to the wake-up, or up to falling asleep, nanoseconds at full capacity.
    pub work: Dist,
    /// Cache lines that the other side wrote last and this side needs: the word, what it guards,
    /// and what the kernel keeps of the task and its queue.
    pub lines: u32,
}

/// A task as the workload wants it.
#[derive(Clone, Debug)]
pub struct TaskSpec {
    /// What it does.
    pub program: Arc<[Op]>,
    /// CPUs it may use.
    pub allowed: Arc<CpuMask>,
    /// Nice level, -20 to 19.
    pub nice: i8,
    /// Its scheduling class.
    pub class: Class,
    /// What its utilisation is clamped to where a CPU is chosen for it: least and most, 0 to 1024.
    pub uclamp: (u32, u32),
    /// Cache lines of its own that it touches every time it runs.
    pub footprint: u32,
    /// Whose address space it runs in, by its number in [`Workload::spaces`]; `None` for what
    /// has none of its own, as a kernel thread.
    pub space: Option<u32>,
    /// The task group that it is in, by its number in [`Workload::groups`]; `None` for the root
    /// group.
    pub group: Option<usize>,
    /// When it appears by itself, nanoseconds; `None` for a task that another one forks.
    pub start: Option<Dist>,
    /// Where it is. Of a task in a guest `allowed` means vCPUs; outside it means nothing, nor do
    /// nice level, class and `uclamp` in either.
    pub site: Site,
}

/// An address space: what the threads of one process have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Working set that all of its threads use, whichever of them runs; KiB.
    pub shared_kib: u32,
    /// How much of that a thread writes rather than reads, percent, 0 to 100.
    pub written_pct: u8,
}

/// A task's utilisation as it is.
pub const UNCLAMPED: (u32, u32) = (0, 1024);

/// What a run of a workload is judged by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Name of the score.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// How it is computed.
    pub basis: Basis,
}

/// How a score is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Basis {
    /// More is better: `per_count` times the counted units per second, divided by `instances`.
    Rate {
        /// See above.
        per_count: f64,
        /// See above.
        instances: f64,
    },
    /// More is better: the counted units per second, `fps`; and what part of the time that CPUs
    /// were not idle they were in the kernel, `kernel`, in percent.
    Frames,
    /// What schbench prints: percentiles of the wake-up latency in microseconds, the 20th
    /// percentile of the requests a second, and their mean.
    Requests,
    /// Less is better: seconds from `StartClock` to `StopClock`.
    Time,
}

impl Measure {
    /// `per_count` times the counted units per second, divided by `instances`.
    pub fn rate(name: &'static str, unit: &'static str, per_count: f64, instances: f64) -> Measure {
        Measure {
            name,
            unit,
            basis: Basis::Rate {
                per_count,
                instances,
            },
        }
    }
}

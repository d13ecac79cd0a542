// SPDX-License-Identifier: GPL-2.0-or-later
//! Tasks, their programs and what a run of them is judged by.

use std::sync::Arc;

use perch_engine::Dist;
use perch_machine::Footprint;
use perch_policy::CpuMask;

use crate::{Class, Site};

/// An operation of a task's program.
///
/// A task does its operations in order, from the first one, and goes back where a `Jump` or a
/// `Repeat` says so. Operations take no time of their own but for what their fields say and for
/// the cache lines that the task has to fetch. A work time is in nanoseconds on a CPU of full
/// capacity (1024), and takes longer on a slower CPU; a sleep is in nanoseconds by the clock.
///
/// Channels, pipes, mutexes, counters, condition variables and timers are named by numbers from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// The task computes for this long in user mode; work.
    Run(Dist),
    /// The task computes for this long in a system call, and the simulator counts that as the
    /// kernel's time; work.
    Kernel(Dist),
    /// The task sleeps for this long on a high-resolution timer.
    Sleep(Dist),
    /// The task sleeps until its next period begins. Periods of this many nanoseconds follow one
    /// another from the moment at which the task appeared. If the period has begun already, the
    /// task does not sleep, so it keeps its periods whatever else it does.
    Next(u64),
    /// The task sleeps until the next period of a timer begins. Several tasks may use one timer,
    /// whose first period begins when the first of its users appeared.
    Timer {
        /// Number of the timer.
        timer: u32,
        /// Length of a period, nanoseconds.
        period: u64,
        /// How the timer goes on when a task comes late, after the period has begun: an absolute
        /// timer keeps its periods; any other timer begins a new one now. The task does not
        /// sleep in either case.
        absolute: bool,
    },
    /// The task puts a message into a channel and wakes the task that has waited there longest.
    Send {
        /// Number of the channel.
        channel: u32,
        /// Cache lines that the receiver has to fetch: the payload, and the kernel's own lines.
        lines: u32,
        /// The sender tells the kernel that it will sleep soon (WF_SYNC).
        sync: bool,
    },
    /// The task writes a message to a stream socket, which is a channel with a bound. The task
    /// sleeps while the socket is full. It wakes the reader in a sync wake-up.
    Write {
        /// Number of the channel.
        channel: u32,
        /// Cache lines that the reader has to fetch.
        lines: u32,
        /// Messages that the socket's buffer holds.
        room: u32,
        /// The reader wakes the writers that sleep on a full buffer once at most so many are left.
        low: u32,
        /// The reader tells the kernel then that it will sleep soon.
        sync: bool,
    },
    /// The task takes a message out of a channel. It sleeps until there is one.
    Receive {
        /// Number of the channel.
        channel: u32,
    },
    /// The task writes a message of at most a page to a pipe, and sleeps while the pipe is full.
    WritePipe {
        /// Number of the pipe.
        pipe: u32,
        /// Cache lines that the reader has to fetch.
        lines: u32,
        /// Messages that one of the pipe's sixteen buffers, a page, has room for.
        fits: u32,
    },
    /// The task reads a message from a pipe, and sleeps until there is one.
    ReadPipe {
        /// Number of the pipe.
        pipe: u32,
    },
    /// The task makes a channel readable for good, in one system call: it writes one byte that
    /// every reader polls for and no reader takes away. The kernel wakes all waiting readers in
    /// sync wake-ups, one after the other under the lock of the wait queue, so that no reader gets
    /// the waker's CPU before the last reader is awake.
    Release {
        /// Number of the channel, which serves nothing else.
        channel: u32,
        /// Tasks that read from the channel, once each.
        readers: u32,
    },
    /// The task has done a unit of the workload's work, and the simulator counts it.
    Count,
    /// The task takes the next number of a shared counter, and keeps the number's remainder as
    /// what it drew.
    Draw {
        /// Number of the counter.
        counter: u32,
        /// Divisor that gives the remainder, at least 1.
        of: u32,
    },
    /// The task locks a mutex as glibc's `pthread_mutex_lock` does. A free mutex costs its cache
    /// line and nothing else; for a held mutex the task makes a futex call and sleeps.
    Lock {
        /// The mutex's number is this plus what the task drew last (0 if it drew nothing).
        first: u32,
        /// Work of a futex call until the task falls asleep.
        wait: Dist,
    },
    /// The task unlocks a mutex, and then wakes the first waiter in a futex call if the mutex says
    /// that there may be one.
    Unlock {
        /// The mutex's number is this plus what the task drew last, as in `Lock`.
        first: u32,
        /// Work of a futex call until the wake-up.
        wake: Dist,
    },
    /// The task blocks its own futex word and puts itself on top of another task's list. If the
    /// other task's word is blocked, this task sets that word to running and wakes the other task
    /// in a futex call (schbench's `fpost()`).
    Post {
        /// Number of the other task.
        to: u32,
        /// The futex call, until the wake-up.
        call: FutexCall,
    },
    /// The task waits until its own futex word is running, and blocks the word again (schbench's
    /// `fwait()`). If the word is still blocked when the kernel looks, the task sleeps in a futex
    /// call, which this describes until the task falls asleep.
    WaitPosted(FutexCall),
    /// The task blocks its own futex word, takes all tasks off its list and reads the clock once.
    /// It then sets the word of each of them to running and wakes that task, the task that came
    /// last first; every wake-up is a futex call, which this describes until the wake-up.
    WakeAll(FutexCall),
    /// The task puts itself on the list of a condition variable. `pthread_cond_wait` is this
    /// operation, an `Unlock`, an `Await` and a `Lock`.
    Enlist {
        /// Number of the condition variable.
        condition: u32,
    },
    /// The task sleeps in a futex call until another task has taken it off the condition
    /// variable's list.
    Await {
        /// Number of the condition variable.
        condition: u32,
        /// The futex call, until the task falls asleep.
        call: FutexCall,
    },
    /// The task takes the first task off the condition variable's list and wakes it in a futex
    /// call. With an empty list the task makes no call.
    Signal {
        /// Number of the condition variable.
        condition: u32,
        /// The futex call, until the wake-up.
        call: FutexCall,
    },
    /// The task takes all tasks off the condition variable's list and wakes them in one futex
    /// call. With an empty list the task makes no call.
    Broadcast {
        /// Number of the condition variable.
        condition: u32,
        /// The futex call, until the first wake-up.
        call: FutexCall,
    },
    /// The task comes to a barrier, whose mutex it holds. The last task to come goes on at
    /// another operation than the others.
    Gate {
        /// Number of the barrier's condition variable.
        condition: u32,
        /// Tasks that the barrier waits for.
        users: u32,
        /// Operation at which the last task goes on.
        last: u32,
    },
    /// The task leaves a barrier, whose mutex it holds: the barrier now waits for it again.
    Ungate {
        /// Number of the barrier's condition variable.
        condition: u32,
    },
    /// The task notes its wake-up latency: the time that has passed since the task that woke it
    /// read the clock in `WakeAll`.
    NoteLatency,
    /// The task has done a unit of the workload's work, and the simulator counts it as one request
    /// of the current second too.
    NoteRequest,
    /// The task takes the lock that belongs to the CPU it runs on: it tries, without sleeping,
    /// until it has the lock. If the kernel moved the task meanwhile, the task gives that lock
    /// back and takes the lock of its new CPU.
    LockCpu,
    /// The task unlocks the CPU lock that it holds, on whichever CPU it now runs.
    UnlockCpu,
    /// The task computes until this many nanoseconds have passed by the clock, and time in which
    /// it did not run counts too.
    Spin(Dist),
    /// The task reads and writes data of its own, and fetches the cache lines that its CPU's
    /// caches do not have.
    Touch {
        /// Cache lines of that data.
        lines: u32,
    },
    /// The task sets its own affinity (`sched_setaffinity(2)`). If its CPU is not among the new
    /// ones, the kernel moves it to one of them.
    Bind {
        /// Number of the new set of CPUs in [`crate::Workload::masks`].
        mask: u32,
    },
    /// The task moves to another task group, and competes for its CPU there.
    Join {
        /// Number of the group in [`crate::Workload::groups`]; `None` for the root group.
        group: Option<u32>,
    },
    /// The task lets others on its CPU run first, as `sched_yield(2)` of the era's kernel does.
    Yield,
    /// The task forks the task of this number.
    Fork(u32),
    /// The task becomes another program (`execve(2)`), and the kernel may move it to a CPU that is
    /// less busy.
    Exec,
    /// The task goes on at the operation of this number.
    Jump(u32),
    /// The task goes back to an earlier operation until it has done the loop often enough. A task
    /// counts one loop at a time, so a builder writes out a loop inside another one.
    Repeat {
        /// Operation at which a round begins.
        to: u32,
        /// Rounds in all, at least 1.
        times: u64,
    },
    /// The measured part of the run begins when the first task comes here: for a workload that is
    /// judged by its time.
    StartClock,
    /// The measured part of the run ends here, and the run with it.
    StopClock,
    /// The measured part of the run ends when this many tasks have come to this operation, and
    /// the run with it.
    StopClockAfter(u32),
    /// The task is a vCPU of a virtual machine: it runs what the guest's scheduler has put on the
    /// vCPU, and sleeps while the guest halts the vCPU.
    Vcpu {
        /// Number of the virtual machine in [`crate::Workload::guests`].
        guest: u32,
        /// Number of the vCPU in the virtual machine.
        vcpu: u32,
    },
    /// The task is the host's thread that moves a virtual machine's packets (vhost): it works while
    /// there are any, and sleeps otherwise.
    Vhost {
        /// Number of the virtual machine in [`crate::Workload::guests`].
        guest: u32,
    },
    /// The task ends.
    Exit,
}

/// The cost of a futex call in which a task wakes another task or falls asleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FutexCall {
    /// Work of the call until the wake-up, or until the task falls asleep, nanoseconds at full
    /// capacity.
    pub work: Dist,
    /// Cache lines that the other task wrote last and this task needs: the futex word, the data
    /// that the word guards, and the kernel's lines of the task and of its queue.
    pub lines: u32,
}

/// A task as the workload describes it.
#[derive(Clone, Debug)]
pub struct TaskSpec {
    /// The operations that the task does.
    pub program: Arc<[Op]>,
    /// CPUs that the task may use.
    pub allowed: Arc<CpuMask>,
    /// Nice level, -20 to 19.
    pub nice: i8,
    /// The task's scheduling class.
    pub class: Class,
    /// The least and the greatest utilisation, 0 to 1024, that the kernel takes the task to have
    /// when it chooses a CPU for the task (uclamp).
    pub uclamp: (u32, u32),
    /// Cache lines that the task touches every time it runs.
    pub footprint: Footprint,
    /// Number in [`crate::Workload::spaces`] of the address space that the task runs in; `None` for a
    /// task that has no address space, such as a kernel thread.
    pub space: Option<u32>,
    /// Number in [`crate::Workload::groups`] of the task group that the task is in; `None` for the root
    /// group.
    pub group: Option<usize>,
    /// Time at which the task appears by itself, nanoseconds; `None` for a task that another task
    /// forks.
    pub start: Option<Dist>,
    /// The computer that the task runs on. For a task in a guest, `allowed` names vCPUs; for a
    /// task outside, `allowed` means nothing. Nice level, class and `uclamp` mean nothing for
    /// either.
    pub site: Site,
}

impl TaskSpec {
    /// A fair task of nice 0 on this machine, in the root group.
    pub fn new(
        program: impl Into<Arc<[Op]>>,
        allowed: &Arc<CpuMask>,
        footprint: impl Into<Footprint>,
        start: Option<Dist>,
    ) -> TaskSpec {
        TaskSpec {
            program: program.into(),
            allowed: allowed.clone(),
            nice: 0,
            class: Class::Fair,
            uclamp: UNCLAMPED,
            footprint: footprint.into(),
            space: None,
            group: None,
            start,
            site: Site::Host,
        }
    }
}

/// An address space: what the threads of one process have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Working set that every thread of the process uses whenever it runs, KiB.
    pub shared_kib: u32,
    /// Part of the working set that a thread writes rather than reads, percent, 0 to 100.
    pub written_pct: u8,
}

/// The `uclamp` of a task whose utilisation the kernel takes as it is.
pub const UNCLAMPED: (u32, u32) = (0, 1024);

/// The score by which a run of a workload is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Name of the score.
    pub name: &'static str,
    /// Unit of the score.
    pub unit: &'static str,
    /// The rule by which the simulator computes the score.
    pub basis: Basis,
}

/// The rule by which the simulator computes a score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Basis {
    /// More is better: the score is `per_count` times the counted units per second, divided by
    /// `instances`.
    Rate {
        /// Amount of the score's unit that one counted unit stands for.
        per_count: f64,
        /// Instances of the benchmark that the score is divided among.
        instances: f64,
    },
    /// More is better: the first score, `fps`, is the counted units per second. The second score,
    /// `kernel`, is the kernel's part of the time in which CPUs were not idle, percent.
    Frames,
    /// The scores are what schbench prints: percentiles of the wake-up latency in microseconds,
    /// the 20th percentile of the requests a second, and the mean of the requests a second.
    Requests,
    /// Less is better: the score is the seconds from `StartClock` to `StopClock`.
    Time {
        /// The moment after `StartClock` at which the workload is killed, nanoseconds; `None` if
        /// nobody kills it.
        killed_ns: Option<u64>,
    },
}

impl Measure {
    /// The time of a workload that goes on until it is done.
    pub fn time() -> Measure {
        Measure { name: "time", unit: "s", basis: Basis::Time { killed_ns: None } }
    }

    /// A [`Basis::Rate`]: `per_count` times the counted units per second, divided by `instances`.
    pub fn rate(name: &'static str, unit: &'static str, per_count: f64, instances: f64) -> Measure {
        Measure { name, unit, basis: Basis::Rate { per_count, instances } }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! System calls that neither the standard library nor musl has.

use std::io;
use std::time::Duration;

/// A task's scheduling class, as sched_setattr(2) takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Other { nice: i32 },
    Batch { nice: i32 },
    Idle,
    Ext { nice: i32 },
    Fifo { priority: u32 },
    RoundRobin { priority: u32 },
    Deadline { runtime_us: u64, period_us: u64 },
}

/// The kernel's SCHED_EXT, of sched(7).
const SCHED_EXT: u32 = 7;

/// The kernel's struct sched_attr in its first size.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    match result {
        ..0 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

/// Gives a task another class; 0 is the calling thread. Its children start as ordinary tasks, whatever
/// its class.
///
/// # Errors
/// The kernel's: ESRCH where there is no such task, EBUSY where there is no room for a deadline.
pub(crate) fn set_class(pid: i32, class: Class) -> io::Result<()> {
    let mut attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        ..Attributes::default()
    };
    match class {
        Class::Other { nice } => attributes.nice = nice,
        Class::Batch { nice } => {
            attributes.policy = libc::SCHED_BATCH as u32;
            attributes.nice = nice;
        }
        Class::Idle => attributes.policy = libc::SCHED_IDLE as u32,
        Class::Ext { nice } => {
            attributes.policy = SCHED_EXT;
            attributes.nice = nice;
        }
        Class::Fifo { priority } => {
            attributes.policy = libc::SCHED_FIFO as u32;
            attributes.priority = priority;
        }
        Class::RoundRobin { priority } => {
            attributes.policy = libc::SCHED_RR as u32;
            attributes.priority = priority;
        }
        Class::Deadline { runtime_us, period_us } => {
            attributes.policy = libc::SCHED_DEADLINE as u32;
            attributes.runtime = runtime_us * 1000;
            attributes.deadline = period_us * 1000;
            attributes.period = period_us * 1000;
        }
    }
    // SAFETY: the kernel reads the attributes, whose size they tell, while the call lasts.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, pid, &raw const attributes, 0) };
    checked(done).map(drop)
}

/// Allows a task these CPUs only.
///
/// # Errors
/// The kernel's: ESRCH where there is no such task, EINVAL where none of the CPUs is online.
pub(crate) fn set_affinity(pid: i32, cpus: &[usize]) -> io::Result<()> {
    let words = cpus.iter().max().map_or(0, |most| most / 64) + 1;
    let mut mask = vec![0u64; words];
    for cpu in cpus {
        mask[cpu / 64] |= 1 << (cpu % 64);
    }
    // SAFETY: the kernel reads the mask, whose size is told, while the call lasts.
    let done = unsafe {
        libc::syscall(libc::SYS_sched_setaffinity, pid, size_of_val(&mask[..]), mask.as_ptr())
    };
    checked(done).map(drop)
}

/// Sends a signal to a process; one that is gone gets none.
pub(crate) fn signal(pid: i32, signal: i32) {
    // SAFETY: the call takes two numbers.
    unsafe { libc::kill(pid, signal) };
}

/// Reaps a child if it has ended, and returns whether it had.
pub(crate) fn reap(pid: i32) -> bool {
    // SAFETY: a null pointer says that the status is not wanted.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) != 0 }
}

/// Time since the boot, ns.
pub(crate) fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes the time there while the call lasts. There is always this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Sleeps for `us` microseconds, and may be used in the child of a process with several threads.
pub(crate) fn sleep_us(us: u64) {
    let time =
        libc::timespec { tv_sec: (us / 1_000_000) as _, tv_nsec: (us % 1_000_000 * 1000) as _ };
    // SAFETY: the kernel reads the time while the call lasts.
    unsafe { libc::nanosleep(&time, std::ptr::null_mut()) };
}

/// Computes for `us` microseconds of the clock.
pub(crate) fn spin_us(us: u64) {
    let until = now_ns() + us * 1000;
    while now_ns() < until {
        std::hint::spin_loop();
    }
}

/// Looks again and again until `is_so`, for at most `ns` of this machine's time; false if that never came.
pub(crate) fn comes(ns: u64, mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = now_ns() + ns;
    while !is_so() {
        if now_ns() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Waits until all of these children have ended, for at most `ns`; those are left that have not.
pub(crate) fn reap_all(children: &mut Vec<i32>, ns: u64) {
    comes(ns, || {
        children.retain(|child| !reap(*child));
        children.is_empty()
    });
}

/// Keeps the calling process in memory, and has the kernel kill others first.
pub(crate) fn survive() {
    // It fails where a limit forbids it, and then the process takes its chances.
    let _ = std::fs::write("/proc/self/oom_score_adj", "-1000");
    // SAFETY: the call takes a number.
    unsafe { libc::mlockall(libc::MCL_CURRENT) };
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The scheduler's events, whoever recorded them.

use std::fmt;

/// A command's name as the kernel has it: 15 bytes and a zero.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name([u8; 16]);

impl Name {
    /// As much of it as a name holds, up to the first zero.
    pub fn new(bytes: &[u8]) -> Name {
        let mut name = [0; 16];
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
        let end = end.min(15);
        name[..end].copy_from_slice(&bytes[..end]);
        Name(name)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.iter().position(|&b| b == 0).unwrap_or(16);
        f.write_str(&String::from_utf8_lossy(&self.0[..end]))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// Where the kernel was when it wrote an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// In the task itself.
    Task,
    /// In a softirq on top of it. A system call that sends over loopback delivers in one.
    Softirq,
    /// In an interrupt, which has nothing to do with the task that it interrupted.
    Interrupt,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `sched_switch`.
    Switch {
        /// Who ran; 0 for the idle task.
        prev: i32,
        /// Its command.
        prev_name: Name,
        /// Its priority: 100 to 139 for nice -20 to 19, less for real-time.
        prev_prio: i32,
        /// What becomes of it.
        state: State,
        /// Who runs from now on.
        next: i32,
        /// Its priority.
        next_prio: i32,
        /// Its command.
        next_name: Name,
    },
    /// `sched_waking`: written by the waker.
    Waking {
        /// Who is woken.
        pid: i32,
        /// Its command.
        name: Name,
    },
    /// `sched_wakeup`: where there is no `sched_waking`; the waker, or the CPU that it asked.
    Wakeup {
        /// Who is woken.
        pid: i32,
        /// Its command.
        name: Name,
    },
    /// `sched_wakeup_new`: a new task is first woken.
    WakeupNew {
        /// Who.
        pid: i32,
        /// Its command.
        name: Name,
    },
    /// `sched_process_fork`.
    Fork {
        /// Who was forked.
        child: i32,
        /// Its command.
        name: Name,
    },
    /// `sched_process_exec`, or perf's own record of it.
    Exec,
    /// `sched_migrate_task`.
    Migrate,
}

/// What becomes of a task that leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It could go on: others go first.
    Runnable,
    /// It sleeps.
    Asleep,
    /// It is gone.
    Dead,
}

impl State {
    /// From `prev_state` as the kernel has had it since 4.14.
    pub fn of_bits(bits: u64) -> State {
        const PREEMPTED: u64 = 0x100;
        const DEAD: u64 = 0x30;
        match bits {
            0 => State::Runnable,
            bits if bits & PREEMPTED != 0 => State::Runnable,
            bits if bits & DEAD != 0 => State::Dead,
            _ => State::Asleep,
        }
    }
}

/// An event of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, nanoseconds of some clock.
    pub at_ns: u64,
    /// On which CPU.
    pub cpu: u32,
    /// Who ran there; 0 for the idle task.
    pub pid: i32,
    /// Its process, where that is known.
    pub process: Option<i32>,
    /// Where the kernel was.
    pub context: Context,
    /// What happened.
    pub kind: Kind,
}

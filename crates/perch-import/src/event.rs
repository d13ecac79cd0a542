// SPDX-License-Identifier: GPL-2.0-or-later
//! The scheduler's events, independent of the program that recorded them.

use std::fmt;

/// A command's name in the kernel's form: 15 bytes and a zero.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name([u8; 16]);

impl Name {
    /// Takes as many bytes as a name holds, up to the first zero.
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

/// The context in which the kernel wrote an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// The kernel ran the task itself.
    Task,
    /// The kernel ran a softirq on top of the task. A system call that sends over loopback delivers
    /// in a softirq.
    Softirq,
    /// The kernel ran an interrupt, which has nothing to do with the interrupted task.
    Interrupt,
}

impl Context {
    /// Reads the flags that ftrace gives every event (`common_flags`).
    pub(crate) fn of_flags(flags: u64) -> Context {
        const HARDIRQ: u64 = 0x08;
        const SOFTIRQ: u64 = 0x10;
        const NMI: u64 = 0x40;
        match flags {
            flags if flags & (HARDIRQ | NMI) != 0 => Context::Interrupt,
            flags if flags & SOFTIRQ != 0 => Context::Softirq,
            _ => Context::Task,
        }
    }
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `sched_switch`.
    Switch {
        /// The task that ran; 0 for the idle task.
        prev: i32,
        /// That task's command.
        prev_name: Name,
        /// That task's priority: 100 to 139 for nice -20 to 19, less for real-time.
        prev_prio: i32,
        /// The state of that task after the switch.
        state: State,
        /// The task that runs from now on.
        next: i32,
        /// The next task's priority.
        next_prio: i32,
        /// The next task's command.
        next_name: Name,
    },
    /// `sched_waking`, which the waker writes.
    Waking {
        /// The wakee.
        pid: i32,
        /// The wakee's command.
        name: Name,
    },
    /// `sched_wakeup`, used where there is no `sched_waking`; the waker writes it, or the CPU that
    /// the waker asked.
    Wakeup {
        /// The wakee.
        pid: i32,
        /// The wakee's command.
        name: Name,
    },
    /// `sched_wakeup_new`: a new task is woken for the first time.
    WakeupNew {
        /// The new task.
        pid: i32,
        /// The new task's command.
        name: Name,
    },
    /// `sched_process_fork`.
    Fork {
        /// The task that was forked.
        child: i32,
        /// The forked task's command.
        name: Name,
    },
    /// `sched_process_exec`, or perf's own record of it.
    Exec,
    /// `sched_migrate_task`.
    Migrate,
}

/// The state of a task that leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The task could go on, but other tasks go first.
    Runnable,
    /// The task sleeps.
    Asleep,
    /// The task is gone.
    Dead,
}

impl State {
    /// Reads `prev_state` in the form that the kernel has used since 4.14.
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
    /// The time of the event, nanoseconds of some clock.
    pub at_ns: u64,
    /// The CPU on which the event happened.
    pub cpu: u32,
    /// The task that ran on that CPU; 0 for the idle task.
    pub pid: i32,
    /// The task's process, where it is known.
    pub process: Option<i32>,
    /// The kernel's context.
    pub context: Context,
    /// The kind of the event.
    pub kind: Kind,
}

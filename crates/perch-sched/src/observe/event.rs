// SPDX-License-Identifier: GPL-2.0-or-later
//! The stream of events: counts, text traces, recordings and all other observers read it. The counts
//! read it in every run, compiled to what each kind of event changes; a run without an observer pays
//! for a test at each place besides.

use std::io;

use perch_machine::Distance;
use perch_policy::{CpuMask, Host, TaskState, Verdict, Wake};

use crate::core::Waker;
use crate::id::TaskId;

/// All that the policy is shown when it is about to be asked where a task of the fair class is to
/// go. Its answer is the next [`Observed::Decided`].
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The machine as the policy sees it.
    pub host: &'a Host,
    /// The kind of the wake-up, and its place.
    pub wake: &'a Wake,
    /// The task that wakes the wakee. Where a timer or a packet wakes it on an idle CPU, and where
    /// the task itself calls exec, this is the CPU's idle task, whose id is `u32::MAX` less the
    /// CPU's number.
    pub waker: &'a TaskState,
    /// The task that wakes up.
    pub wakee: &'a TaskState,
    /// The CPUs that the task may use.
    pub allowed: &'a CpuMask,
}

/// The policy has chosen a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Decided<'a> {
    /// The task that wakes up.
    pub task: TaskId,
    /// The task's waker; a task that calls exec is its own waker.
    pub waker: Waker,
    /// The waker's CPU.
    pub this_cpu: usize,
    /// The CPU on which the task ran last.
    pub prev_cpu: usize,
    /// The policy's answer.
    pub verdict: &'a Verdict,
    /// True if the task has never run.
    pub is_new: bool,
    /// The distance from the waker's CPU to the chosen one.
    pub from_waker: Distance,
    /// The distance from the CPU on which the task ran last to the chosen one.
    pub from_prev: Distance,
    /// True if the chosen CPU was busy.
    pub busy: bool,
}

/// An outside scheduler has chosen a CPU. The fields are those of [`Decided`].
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Placed {
    pub task: TaskId,
    pub waker: Waker,
    pub this_cpu: usize,
    pub prev_cpu: usize,
    pub cpu: usize,
    pub is_new: bool,
    pub from_waker: Distance,
    pub from_prev: Distance,
    pub busy: bool,
}

/// The reason for which a real-time task goes to a CPU, or stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtStep {
    /// A woken task stays on the CPU that it ran on.
    Stay,
    /// A woken task goes to a CPU that runs a lower priority.
    Lowest,
    /// A CPU pushed a waiting task away.
    Push,
    /// A CPU that became free pulled a waiting task.
    Pull,
    /// The task may run on one CPU only, or not on its parent's CPU.
    Allowed,
}

impl RtStep {
    /// Returns the step's name in traces.
    pub fn name(self) -> &'static str {
        match self {
            RtStep::Stay => "stay",
            RtStep::Lowest => "lowest",
            RtStep::Push => "push",
            RtStep::Pull => "pull",
            RtStep::Allowed => "allowed",
        }
    }
}

/// A real-time task was given a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The task.
    pub task: TaskId,
    /// The CPU that made the decision.
    pub this_cpu: usize,
    /// The CPU that the task leaves.
    pub from: usize,
    /// The CPU that the task gets; the same one when it stays.
    pub to: usize,
    /// The reason of the move.
    pub step: RtStep,
    /// The distance between the two.
    pub distance: Distance,
}

/// An event of the scheduler.
#[derive(Clone, Copy, Debug)]
pub enum Observed<'a> {
    /// The policy is about to be asked.
    Asked(Asked<'a>),
    /// The policy has answered.
    Decided(Decided<'a>),
    /// An outside scheduler has answered.
    Placed(Placed),
    /// A task was woken where it was, so that there was nothing to decide: EEVDF had left it on its
    /// queue, or its CPU was still about to switch away from it.
    Stayed {
        /// The task.
        task: TaskId,
        /// Its waker.
        waker: Waker,
        /// The waker's CPU.
        this_cpu: usize,
        /// The task's CPU.
        cpu: usize,
        /// What it had not left.
        reason: &'static str,
    },
    /// A real-time task was woken, pushed or pulled.
    RtMoved(Moved),
    /// A real-time task was woken or forked, and has its CPU.
    RtWoken {
        /// The task.
        task: TaskId,
        /// Its waker.
        waker: Waker,
        /// The waker's CPU.
        this_cpu: usize,
        /// The CPU on which the task ran last.
        prev_cpu: usize,
        /// The CPU to which it goes.
        cpu: usize,
        /// True if that CPU was busy.
        busy: bool,
    },
    /// A CPU switched to another task.
    Switched {
        /// The task that runs now.
        task: TaskId,
        /// The CPU.
        cpu: usize,
        /// The time since the task's wake-up, nanoseconds; `None` if the task only waited for its turn.
        latency_ns: Option<u64>,
    },
    /// A wakee takes the CPU from the running task.
    Preempted {
        /// The CPU.
        cpu: usize,
        /// The wakee.
        wakee: TaskId,
    },
    /// The balancer, active balance or exec moved a task.
    Balanced {
        /// The task.
        task: TaskId,
        /// The CPU from which it was moved.
        from: usize,
        /// The CPU to which it was moved.
        to: usize,
        /// The distance between the two.
        distance: Distance,
    },
    /// A tick found a CPU busy.
    Ticked {
        /// The CPU.
        cpu: usize,
    },
    /// A task started to run in another LLC than before.
    ChangedLlc {
        /// The task.
        task: TaskId,
        /// The CPU on which it runs.
        cpu: usize,
        /// True if the task left this LLC a short time ago and comes back.
        bounces: bool,
    },
    /// A CPU spent time in the kernel, or was charged for it.
    InKernel {
        /// The CPU.
        cpu: usize,
        /// The time, nanoseconds.
        ns: u64,
    },
    /// A CPU got its first real-time task that waits and may run elsewhere.
    RtOverloaded {
        /// The CPU.
        cpu: usize,
    },
    /// A CPU looked whether there is a real-time task to pull.
    RtLooked {
        /// The CPU.
        cpu: usize,
        /// The counters of overloaded CPUs that it read for that.
        loads: u32,
    },
    /// A tick took a CPU from the real-time tasks, for the share of the others.
    RtLimited {
        /// The CPU.
        cpu: usize,
    },
}

/// An observer of a run.
pub trait Observer {
    /// Notes that `what` happened at `now_ns`.
    ///
    /// # Errors
    /// The observer could not keep what it saw. The run ends.
    fn see(&mut self, now_ns: u64, what: &Observed<'_>) -> io::Result<()>;
}

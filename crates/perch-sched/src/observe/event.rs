// SPDX-License-Identifier: GPL-2.0-or-later
//! The stream of events for an observer: text traces, recordings and all other observers read it. A
//! run without an observer pays for a test at each place, and for nothing else.

use std::io;

use perch_policy::{CpuMask, Host, TaskState, Verdict, Wake};

use crate::core::Waker;

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
    pub task: u32,
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
    pub task: u32,
    /// The CPU that made the decision.
    pub this_cpu: usize,
    /// The CPU that the task leaves.
    pub from: usize,
    /// The CPU that the task gets; the same one when it stays.
    pub to: usize,
    /// The reason of the move.
    pub step: RtStep,
}

/// An event of the scheduler.
#[derive(Clone, Copy, Debug)]
pub enum Observed<'a> {
    /// The policy is about to be asked.
    Asked(Asked<'a>),
    /// The policy has answered.
    Decided(Decided<'a>),
    /// A delayed task was woken, which EEVDF had left on its queue, so that there was nothing to
    /// decide.
    Requeued {
        /// The task.
        task: u32,
        /// Its waker.
        waker: Waker,
        /// The waker's CPU.
        this_cpu: usize,
        /// The CPU of the queue.
        cpu: usize,
    },
    /// A real-time task was woken, pushed or pulled.
    RtMoved(Moved),
    /// A real-time task was woken or forked, and has its CPU.
    RtWoken {
        /// The task.
        task: u32,
        /// Its waker.
        waker: Waker,
        /// The waker's CPU.
        this_cpu: usize,
        /// The CPU on which the task ran last.
        prev_cpu: usize,
        /// The CPU to which it goes.
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

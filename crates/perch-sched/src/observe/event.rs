// SPDX-License-Identifier: GPL-2.0-or-later
//! The stream of what happens, for an observer: text traces, recordings and whatever else looks on
//! are readers of it. A run without an observer pays for a test at each place, and for nothing else.

use std::io;

use perch_policy::{CpuMask, Host, TaskState, Verdict, Wake};

use crate::core::Waker;
use crate::id::TaskId;

/// The policy is about to be asked where a task of the fair class is to go: all that the policy is
/// shown. Its answer is the next [`Observed::Decided`].
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The machine as the policy sees it.
    pub host: &'a Host,
    /// Why the task wakes up, and where.
    pub wake: &'a Wake,
    /// The task that wakes it. Where a timer or a packet wakes it on an idle CPU, and where the task
    /// itself calls exec, this is the CPU's idle task, whose id is `u32::MAX` less the CPU's number.
    pub waker: &'a TaskState,
    /// The task.
    pub wakee: &'a TaskState,
    /// The CPUs that the task may use.
    pub allowed: &'a CpuMask,
}

/// The policy has chosen a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Decided<'a> {
    /// The task.
    pub task: TaskId,
    /// Its waker; a task that calls exec is its own.
    pub waker: Waker,
    /// The waker's CPU.
    pub this_cpu: usize,
    /// The CPU on which the task ran last.
    pub prev_cpu: usize,
    /// What the policy said.
    pub verdict: &'a Verdict,
    /// The task has never run.
    pub is_new: bool,
}

/// Why a real-time task goes to a CPU, or stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtStep {
    /// A woken task stays where it was.
    Stay,
    /// A woken task goes where only lower priorities run.
    Lowest,
    /// A CPU pushed a waiting task away.
    Push,
    /// A CPU that became free pulled a waiting task.
    Pull,
    /// The task may run on one CPU only, or not where its parent is.
    Allowed,
}

impl RtStep {
    /// Its name in traces.
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
    /// The CPU on which that was decided.
    pub this_cpu: usize,
    /// From where.
    pub from: usize,
    /// To where; the same when it stays.
    pub to: usize,
    /// Why.
    pub step: RtStep,
}

/// One thing that happened.
#[derive(Clone, Copy, Debug)]
pub enum Observed<'a> {
    /// The policy is about to be asked.
    Asked(Asked<'a>),
    /// It has answered.
    Decided(Decided<'a>),
    /// A sleeper was woken that EEVDF had left on its queue: there was nothing to decide.
    Requeued {
        /// The task.
        task: TaskId,
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
        task: TaskId,
        /// Its waker.
        waker: Waker,
        /// The waker's CPU.
        this_cpu: usize,
        /// The CPU on which it was.
        prev_cpu: usize,
        /// The CPU to which it goes.
        cpu: usize,
    },
}

/// Somebody who looks on.
pub trait Observer {
    /// Something happened at `now_ns`.
    ///
    /// # Errors
    /// When the observer cannot keep what it saw: the run ends.
    fn see(&mut self, now_ns: u64, what: &Observed<'_>) -> io::Result<()>;
}

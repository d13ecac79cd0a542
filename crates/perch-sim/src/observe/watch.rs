// SPDX-License-Identifier: GPL-2.0-or-later
//! What somebody who looks on is told of a run, as it happens.

use std::io;

pub use perch_sched::observe::Asked;

/// What becomes of a task that a CPU turns away from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It would go on: another one's turn has come, or it has been moved.
    Runnable,
    /// It waits for something.
    Asleep,
    /// It is gone.
    Dead,
}

/// A task was woken, forked, or asked for a CPU by calling exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken {
    /// When, nanoseconds.
    pub at_ns: u64,
    /// Its number in [`perch_workload::Workload::tasks`].
    pub task: u32,
    /// Who woke it; nobody where a timer or a packet did on an idle CPU, and where it appears by
    /// itself.
    pub waker: Option<u32>,
    /// The waker's CPU.
    pub this_cpu: usize,
    /// Where the task ran last.
    pub prev_cpu: usize,
    /// Where it is to run.
    pub cpu: usize,
    /// Why there: the policy's reason, or the rule that left nothing to choose.
    pub reason: &'static str,
    /// CPUs that were examined.
    pub examined: u32,
    /// It has never run.
    pub is_new: bool,
}

/// A CPU turned to another task. At most once a CPU and moment: what was chosen and left within
/// the same nanosecond is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switched {
    /// When, nanoseconds.
    pub at_ns: u64,
    /// The CPU.
    pub cpu: usize,
    /// What ran, and what became of it; nothing where the CPU was idle.
    pub from: Option<(u32, Left)>,
    /// What runs; nothing where the CPU is idle.
    pub to: Option<u32>,
}

/// Somebody who looks on. An error ends the run with [`crate::SimError::Trace`].
///
/// Tasks of guests and of other computers are not told of: what this machine runs of them are
/// vCPUs.
pub trait Watch {
    /// The policy is asked. By itself this keeps nothing.
    ///
    /// # Errors
    /// When what was told cannot be kept.
    fn asked(&mut self, _asked: &Asked) -> io::Result<()> {
        Ok(())
    }

    /// A task has a CPU to go to.
    ///
    /// # Errors
    /// When what was told cannot be kept.
    fn woken(&mut self, woken: &Woken) -> io::Result<()>;

    /// A CPU turned to another task.
    ///
    /// # Errors
    /// When what was told cannot be kept.
    fn switched(&mut self, switched: &Switched) -> io::Result<()>;

    /// A last-level cache has another number of runnable tasks, running ones included.
    ///
    /// # Errors
    /// When what was told cannot be kept.
    fn loaded(&mut self, at_ns: u64, llc: usize, runnable: u32) -> io::Result<()>;

    /// The run is over.
    ///
    /// # Errors
    /// When what was told cannot be kept.
    fn ended(&mut self, at_ns: u64) -> io::Result<()>;
}

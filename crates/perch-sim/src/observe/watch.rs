// SPDX-License-Identifier: GPL-2.0-or-later
//! The interface of an onlooker: the run tells it what happens, as it happens.

use std::io;

pub use perch_sched::observe::Asked;

/// The state of a task after its CPU has turned away from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It could go on: another task's turn has come, or the kernel has moved it.
    Runnable,
    /// It sleeps until something wakes it.
    Asleep,
    /// It has ended.
    Dead,
}

/// A task was woken, forked, or asked for a CPU by calling exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken {
    /// The moment, nanoseconds.
    pub at_ns: u64,
    /// The task's number in [`perch_workload::Workload::tasks`].
    pub task: u32,
    /// The task that woke it; `None` if a timer or a packet woke it on an idle CPU, and if it appears
    /// by itself.
    pub waker: Option<u32>,
    /// The waker's CPU.
    pub this_cpu: usize,
    /// The CPU on which the task ran last.
    pub prev_cpu: usize,
    /// The CPU on which it is to run.
    pub cpu: usize,
    /// The policy's reason for that CPU, or the rule that left nothing to choose.
    pub reason: &'static str,
    /// CPUs that the policy examined.
    pub examined: u32,
    /// It has never run.
    pub is_new: bool,
}

/// A CPU turned to another task. An onlooker hears this at most once for each CPU and moment: it does
/// not hear of a task that the CPU picked and left within the same nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switched {
    /// The moment, nanoseconds.
    pub at_ns: u64,
    /// The CPU.
    pub cpu: usize,
    /// The task that ran, and its state now; `None` if the CPU was idle.
    pub from: Option<(u32, Left)>,
    /// The task that runs; `None` if the CPU is idle.
    pub to: Option<u32>,
}

/// An onlooker of a run. Its error ends the run with [`crate::SimError::Trace`].
///
/// It does not hear of tasks of guests and of other computers: this machine runs the vCPUs of the
/// former, and nothing of the latter.
pub trait Watch {
    /// The scheduler asks the policy. An onlooker need not listen to this.
    ///
    /// # Errors
    /// The onlooker's I/O error.
    fn asked(&mut self, _asked: &Asked) -> io::Result<()> {
        Ok(())
    }

    /// A woken task has a CPU to go to.
    ///
    /// # Errors
    /// The onlooker's I/O error.
    fn woken(&mut self, woken: &Woken) -> io::Result<()>;

    /// A CPU turned to another task.
    ///
    /// # Errors
    /// The onlooker's I/O error.
    fn switched(&mut self, switched: &Switched) -> io::Result<()>;

    /// The number of runnable tasks in a last-level cache, running ones included, has changed.
    ///
    /// # Errors
    /// The onlooker's I/O error.
    fn loaded(&mut self, at_ns: u64, llc: usize, runnable: u32) -> io::Result<()>;

    /// The run is over.
    ///
    /// # Errors
    /// The onlooker's I/O error.
    fn ended(&mut self, at_ns: u64) -> io::Result<()>;
}

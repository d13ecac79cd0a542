// SPDX-License-Identifier: GPL-2.0-only
//! Workloads: tasks as small programs that run, sleep and send each other messages.
//!
//! A program is a loop of operations. Nothing in it, nor in any cost, knows which mechanism is
//! on: arms of an experiment run the very same programs with the very same random numbers.

mod network;
mod spec;
mod synthetic;

use std::sync::Arc;

use perch_policy::CpuMask;

use crate::engine::Dist;

pub use spec::{Workload, WorkloadError, names};

/// One step of a task's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Computes for this long at full capacity, nanoseconds.
    Run(Dist),
    /// Sleeps on a high-resolution timer, nanoseconds.
    Sleep(Dist),
    /// Puts a message of `lines` cache lines into a channel and wakes who waits there.
    Send {
        /// Which channel.
        channel: u32,
        /// Cache lines that the receiver has to fetch: payload, and the kernel's own.
        lines: u32,
        /// The sender says that it will sleep soon (WF_SYNC).
        sync: bool,
    },
    /// Takes a message out of a channel, waiting for one if need be.
    Receive {
        /// Which channel.
        channel: u32,
    },
    /// A unit of the workload's work is done.
    Count,
    /// Forks a task, named by its number.
    Fork(u32),
    /// Becomes another program, in a place that suits it better if there is one.
    Exec,
    /// Goes on at this operation.
    Jump(u32),
    /// Ends the task.
    Exit,
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
    /// Cache lines of its own that it touches every time it runs.
    pub footprint: u32,
    /// When it appears by itself, nanoseconds; `None` for a task that another one forks.
    pub start: Option<Dist>,
}

/// What a run of a workload is judged by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Name of the score.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The score is `per_count` times the counted units per second, divided by `instances`.
    pub per_count: f64,
    /// See `per_count`.
    pub instances: f64,
}

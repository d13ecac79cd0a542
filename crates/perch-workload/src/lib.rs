// SPDX-License-Identifier: GPL-2.0-or-later
//! Workloads: tasks as small programs that run, sleep and send each other messages.
//!
//! A program is a loop of operations, see [`Op`]. A program and its costs never depend on which
//! mechanism is on: all arms of an experiment run the same programs with the same random numbers.
//! This crate sees machines and sets of CPUs; it never sees the simulator that runs its programs.
//!
//! [`Workload::parse`] builds a workload from its name and keys. Each builder has a file here:
//! for example, `network` builds tbench and netperf, and `schbench` builds schbench.

mod budget;
mod class;
mod error;
mod ffmpeg;
mod group;
mod guest;
mod hackbench;
mod keys;
mod make;
mod network;
mod program;
pub mod recorded;
pub mod rtapp;
mod schbench;
mod service;
mod spec;
mod synthetic;
mod sysbench;
mod vm;
mod volano;
mod words;
mod workload;

pub use budget::{Budget, Demand, NoBudget, OverBudget};
pub use class::{Class, ClassError, PRIORITIES};
pub use error::{GuestMisfit, SpecError, WorkloadError};
pub use group::{DEFAULT_SHARES, GroupError, GroupSpec, SHARES, check as check_groups};
pub use guest::{GuestSpec, Network, Site};
pub use program::{Basis, FutexCall, Measure, Op, Space, TaskSpec, UNCLAMPED};
pub use spec::{COMMON_KEYS, OF_FILES, names};
pub use workload::{EraError, Workload};

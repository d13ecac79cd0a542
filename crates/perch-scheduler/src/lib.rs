// SPDX-License-Identifier: GPL-2.0-or-later
//! The live scheduler: perch's policy in a running Linux kernel, by sched_ext.
//!
//! [`perch_plan::Settings`] say what is asked for; [`run`] detects the machine, lays its shape out in a BPF
//! arena, loads the program and watches it until it is told to stop or the kernel lets it go. While
//! it runs, [`stats`] are served to each client that asks. The BPF side is in `bpf/`, and
//! `bpf/interface.h` is what the two share.

pub mod cost;
mod counters;
#[doc(hidden)]
pub mod decide;
pub mod doctor;
mod error;
pub mod exit;
mod fits;
mod histogram;
mod intent;
mod kernel;
#[cfg(test)]
mod pelt;
mod program;
mod refusal;
mod rights;
mod service;
mod session;
mod signals;
mod site;
mod stat;
pub mod stats;
mod storage;
mod tree;
pub mod waits;

pub use error::SchedulerError;
pub use kernel::{Kernel, Purpose, UnableError};
pub use refusal::{ObjectError, RefusedError};
pub use session::{News, Options, check, run};
pub use signals::{Request, Signals};

// SPDX-License-Identifier: GPL-2.0-or-later
//! The live scheduler: perch's policy in a running Linux kernel, by sched_ext.
//!
//! [`Settings`] say what is asked for; [`run`] detects the machine, lays its shape out in a BPF
//! arena, loads the program and watches it until it is told to stop or the kernel lets it go. While
//! it runs, [`stats`] are served to each client that asks. The BPF side is in `bpf/`, and
//! `bpf/interface.h` is what the two share.

mod arena;
mod band;
pub mod cost;
mod counters;
#[doc(hidden)]
pub mod decide;
mod described;
pub mod doctor;
mod error;
pub mod exit;
mod histogram;
mod intent;
pub mod interface;
mod kernel;
mod partial;
#[cfg(test)]
mod pelt;
mod program;
mod refusal;
mod rights;
mod rule;
mod service;
mod session;
pub mod settings;
mod signals;
mod site;
mod stat;
pub mod stats;
mod storage;
mod tree;
mod value;
pub mod waits;

pub use arena::Plan;
pub use band::{Band, BandError};
pub use error::SchedulerError;
pub use kernel::{Kernel, Purpose, UnableError};
pub use partial::{Partial, PartialError};
pub use program::Abilities;
pub use refusal::{ObjectError, RefusedError};
pub use rule::{CgroupError, CommError, RuleError};
pub use session::{News, Options, check, run};
pub use settings::{Configuration, Settings, SettingsError};
pub use signals::{Request, Signals};

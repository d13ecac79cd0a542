// SPDX-License-Identifier: GPL-2.0-or-later
//! The stock Linux scheduler as a model: run queues and their classes, wake-ups, ticks, balancing,
//! by era, and what the hardware charges for all of it. The choice of a CPU is the policy's
//! (`perch-policy`).
//!
//! This crate knows nothing of what tasks do, nor of virtual machines and networks: whoever runs a
//! simulation implements [`Programs`], drives the events, and asks for wake-ups, sleep, yields and
//! moves. docs/architecture.md says how the parts fit together.
//!
//! Tasks, entities, queues, task groups and affinities have names of types of their own (`id.rs`).
//! A CPU, an LLC and a domain are a bare `usize`: perch-machine and perch-policy number them so, and
//! nearly every use of such a number is an index into what those two hand out, or a bit of a mask. A
//! name would be unwrapped again at each call to them.

mod balance;
mod cache;
pub mod check;
mod class;
mod core;
mod era;
pub mod hardware;
mod hold;
mod id;
pub mod observe;
mod setup;

pub use crate::balance::longest_busy_interval_ns;
pub use crate::class::ext::{ExtClass, ExtKernel, ExtWake};
pub use crate::class::fair::snapshot::{Member, QueueRules, Snapshot};
pub use crate::core::{Ended, Life, Programs, Rounds, Sched, Waker, kind};
pub use era::NICE_WEIGHT;
pub use hold::Violation;
pub use id::MaskId;
pub use perch_engine::TaskId;
pub use setup::{NewGroup, NewTask, Setup};

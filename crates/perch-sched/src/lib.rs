// SPDX-License-Identifier: GPL-2.0-or-later
//! The stock Linux scheduler as a model: CPUs' queues and scheduling classes, wake-ups, ticks and
//! balancing, as each era's kernel has them, and what the hardware charges for all of it. The
//! policy (`perch-policy`) chooses the CPU of a fair task.
//!
//! This crate knows nothing of what tasks do, nor of virtual machines and networks. The caller that
//! runs a simulation implements [`Programs`], takes the events in their order, and asks for
//! wake-ups, sleep, yields and moves. docs/architecture.md tells how the parts fit together.

mod balance;
mod cache;
pub mod check;
mod class;
mod core;
mod era;
pub mod hardware;
mod hold;
pub mod observe;
mod setup;

pub use crate::core::{Ended, Life, Programs, Rounds, Sched, Waker, kind};
pub use class::fair::NONE;
pub use setup::{NewGroup, NewTask, Setup};

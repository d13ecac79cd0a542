// SPDX-License-Identifier: GPL-2.0-or-later
//! Simulated time: the queue of what happens next, and random numbers that are the same on every
//! machine. Names of things, which are numbers of types of their own.
//!
//! This crate knows nothing of scheduling, machines or workloads: an [`Event`] carries a time and
//! three numbers, whose meaning the owner of the [`EventQueue`] chooses, and a [`TaskId`] is a
//! number that the crates above agree on.

mod id;
mod queue;
mod random;

pub use id::{Id, IdVec, TaskId};
pub use queue::{Event, EventQueue};
pub use random::{Dist, Random};

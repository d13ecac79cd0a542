// SPDX-License-Identifier: GPL-2.0-or-later
//! Chaos: storms that change what a scheduler takes for granted, while canaries watch that every task
//! gets to run.
//!
//! A [`Plan`] is drawn from a seed: the scheduler's arguments, the tasks, and the storms. [`run`]
//! carries it out in a guest and returns a [`Report`]. In a deterministic guest the same plan meets the
//! same moments each time, so a fault that was found once is found again.
//!
//! The process that controls a round is a real-time task, and so are its storms: none of them is in
//! the hands of the scheduler under test, and the round ends even when that scheduler hangs.

mod calls;
mod field;
mod loader;
mod plan;
mod report;
mod round;
mod storm;
mod tasks;

pub use plan::{Plan, Storm};
pub use report::Report;
pub use round::run;

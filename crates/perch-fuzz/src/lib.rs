// SPDX-License-Identifier: GPL-2.0-or-later
//! Fuzzing that stays: every format that perch reads, fed with inputs that nobody wrote.
//!
//! A [`Target`] is one reader. [`fuzz`] takes its seeds, which are good inputs, changes them at
//! random (`recipe.rs`), and tries each: a reader may refuse an input in words, and may neither
//! panic, nor hang, nor take hundreds of megabytes for a small input. proptest draws the changes
//! and finds a smaller input that fails in the same way. With one seed the inputs are the same on
//! every machine. docs/testing.md says how to run it for longer.

mod effort;
mod meter;
mod mutation;
mod recipe;
mod said;
mod target;
mod text;
mod watchdog;

pub use meter::Meter;
pub use said::{refused, refused_at};
pub use target::{Check, Target, fuzz};

use mutation::Mutation;
use recipe::Recipe;

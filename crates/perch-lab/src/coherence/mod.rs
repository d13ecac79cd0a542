// SPDX-License-Identifier: GPL-2.0-or-later
//! The hardware beneath a guest: which cache lines move between its CPUs, and the time that they
//! cost.
//!
//! A plugin in QEMU (`plugin/`) follows every 64-byte line of the guest's memory: which CPU modified
//! it, and which CPUs have a copy, in caches of the machine's sizes; instructions are not followed.
//! It counts from mark to mark, instructions that a program in the guest executes ([`mark`]), and it
//! can make the guest's clocks show the time that the machine's costs give.

mod arguments;
mod export;
mod marks;
mod plugin;
mod record;
mod symbols;

pub use marks::{Mark, SLOTS, mark};
pub(crate) use plugin::{Duties, Plugin, check, check_lines, is_here};
pub use record::{Counted, Slot, Spent};
pub use symbols::Symbols;

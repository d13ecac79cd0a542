// SPDX-License-Identifier: GPL-2.0-or-later
//! Counting the cache lines that move between a guest's CPUs.
//!
//! A plugin in QEMU (`plugin/coherence.c`) follows every 64-byte line of the guest's memory: which
//! CPU modified it, and which CPUs have a copy. Each CPU has a cache of its own that is large enough
//! for everything; instructions are not followed. Counting begins and ends at marks, instructions
//! that a program in the guest executes ([`mark`]).

mod export;
mod marks;
mod plugin;
mod record;
mod symbols;

pub use marks::{Mark, SLOTS, mark};
pub(crate) use plugin::{Plugin, check};
pub use record::{Counted, Kind, Line, Moved, Slot};
pub use symbols::Symbols;

// SPDX-License-Identifier: GPL-2.0-or-later
//! sched_ext as a class of the simulated kernel.
//!
//! A scheduler's BPF C is compiled natively, and runs over what `core` does as sched_ext does it:
//! dispatch queues, idle masks, kicks, timers. Its maps and its kernel functions are ours, its logic
//! is the file that the BPF compiler takes. [`live`] is perch's own.

mod abi;
mod calls;
#[path = "../../perch-scheduler/build/clang.rs"]
mod clang;
mod class;
mod compile;
mod core;
mod costs;
mod describe;
mod faults;
mod foreign;
mod maps;
mod memory;
mod native;
mod object;
mod perch;

pub use compile::CompileError;
pub use foreign::{ForeignError, Package};
pub use object::ObjectError;
pub use perch::{live, live_with_faults};

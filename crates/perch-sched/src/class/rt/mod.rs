// SPDX-License-Identifier: GPL-2.0-or-later
//! The real-time class: FIFO and RR over fair (docs/mechanisms/overload.md and docs/mechanisms/stock.md#rt; read in 6.12).
//!
//! A task that waits and may run elsewhere is pushable; a CPU with one is overloaded. Tasks are
//! pushed away when they are queued or passed over, and pulled when a CPU's own tasks have left it
//! for something lower. Nothing here depends on how the counters of overloaded CPUs lie in memory
//! but what an access costs.

mod account;
mod answers;
mod ask;
mod check;
mod cpupri;
mod enqueue;
mod limit;
mod migrate;
mod overload;
mod place;
mod queue;
mod state;
mod tick;
mod turn;

pub(crate) use answers::RtClass;
pub use queue::RtQueue;
pub use state::RtEntity;
pub(crate) use state::{RtDomain, domain};

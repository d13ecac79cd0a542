// SPDX-License-Identifier: GPL-2.0-or-later
//! The real-time class: FIFO and RR over fair (docs/mechanisms/overload.md and
//! docs/mechanisms/stock.md#rt; read in 6.12).
//!
//! A task that waits and may run elsewhere is pushable; a CPU with a pushable task is overloaded. A
//! CPU pushes a task away when the task is enqueued or passed over, and pulls tasks when its own
//! real-time tasks have left it for a lower priority. Nothing here but the cost of an access
//! depends on the layout of the counters of overloaded CPUs in memory.

mod account;
mod ask;
mod check;
mod cpupri;
mod enqueue;
mod limit;
mod migrate;
mod overload;
mod place;
mod queue;
mod round;
mod state;
mod tick;
mod turn;

pub(crate) use migrate::Push;
pub use queue::RtQueue;
pub use state::RtEntity;
pub(crate) use state::{RtDomain, domain};

// SPDX-License-Identifier: GPL-2.0-or-later
//! The outputs of the scheduler: counts, and typed events for an observer.

mod counts;
mod event;
mod latencies;

pub use counts::{Counts, RtMetrics};
pub use event::{Asked, Decided, Moved, Observed, Observer, Placed, RtStep};
pub use latencies::Latencies;

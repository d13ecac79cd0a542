// SPDX-License-Identifier: GPL-2.0-or-later
//! Readers of what happens in a run: the metrics that every run has, requests, text traces, and
//! onlookers. A run without an onlooker pays for one test at each place that would tell it something.

mod metrics;
mod requests;
mod span;
mod text;
mod watch;
mod watcher;

pub use metrics::{GuestMetrics, Metrics};
pub use perch_sched::check::{CpuGlimpse, Glimpse, LoadGlimpse, TaskGlimpse};
pub use requests::{Requests, WAKE_PERCENTILES};
pub use span::{Batch, SoFar, Span};
pub use text::Text;
pub use watch::{Asked, Left, Switched, Watch, Woken};
pub use watcher::Watcher;

// SPDX-License-Identifier: GPL-2.0-or-later
//! Readers of what happens in a run: the metrics that every run has, requests, traces of text, and
//! watches. A run that nobody looks at pays for a test at each place where something is told.

mod metrics;
mod requests;
mod text;
mod watch;
mod watcher;

pub use metrics::{GuestMetrics, Metrics};
pub use perch_sched::check::{CpuGlimpse, Glimpse, LoadGlimpse, TaskGlimpse};
pub use requests::{Requests, WAKE_PERCENTILES};
pub use text::Text;
pub use watch::{Asked, Left, Switched, Watch, Woken};
pub use watcher::Watcher;

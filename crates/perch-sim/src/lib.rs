// SPDX-License-Identifier: GPL-2.0-or-later
//! A deterministic simulator of the stock Linux scheduler with the perch policy in it.
//!
//! A [`Scenario`] is a machine, a workload, a policy and a seed; running it is a pure function:
//! the same scenario gives the same trace to the byte, on any machine. docs/model.md tells what
//! is modelled and what is left out.

mod c2c;
mod guest;
mod hardware;
mod kernel;
mod latencies;
mod metrics;
mod requests;
mod scenario;
mod watch;

use perch_engine as engine;

pub use c2c::{C2c, Line, Row, User};
pub use hardware::Symbol;
#[doc(hidden)]
pub use kernel::glimpse::{CpuGlimpse, Glimpse, LoadGlimpse, TaskGlimpse};
pub use latencies::Latencies;
pub use metrics::{GuestMetrics, Metrics, RtMetrics};
pub use perch_engine::Dist;
pub use perch_workload as workload;
pub use scenario::{Outcome, RootDomain, Scenario, Score, SimError, UnknownRootDomain};
pub use watch::{Asked, Left, Switched, Watch, Woken};

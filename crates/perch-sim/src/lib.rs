// SPDX-License-Identifier: GPL-2.0-or-later
//! A deterministic simulator of the stock Linux scheduler with the perch policy in it.
//!
//! A [`Scenario`] is a machine, a workload, a policy and a seed; running it is a pure function:
//! the same scenario gives the same trace to the byte, on any machine. docs/model.md says what
//! is modelled and what is left out.

mod id;
mod observe;
mod outside;
mod program;
mod run;
mod scenario;
mod world;

pub use observe::{Asked, Batch, GuestMetrics, Left, Metrics, Switched, Watch, Woken};
#[doc(hidden)]
pub use observe::{CpuGlimpse, Glimpse, LoadGlimpse, TaskGlimpse};
pub use outside::Outside;
pub use perch_engine::Dist;
pub use perch_sched::hardware::{C2c, Line, Row, Symbol, User};
pub use perch_sched::observe::{Counts, Latencies, RtMetrics};
pub use perch_workload as workload;
pub use scenario::{
    Outcome, RootDomain, Scenario, Score, SimError, UnknownRootDomain, balancing_ns,
};

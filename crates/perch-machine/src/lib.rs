// SPDX-License-Identifier: GPL-2.0-or-later
//! The description of a machine: its CPUs, how they share cores, clusters, last-level caches, NUMA
//! nodes and packages, how capable each CPU is, and the costs of distance.
//!
//! This crate knows nothing of scheduling. A [`Machine`] is read from TOML, from the sysfs of a
//! running kernel, from hwloc's XML or from lscpu's text, is checked once, and never changes afterwards.

pub mod cpulist;
pub mod detect;
mod draft;
pub mod draw;
mod error;
mod format;
pub mod hardware;
pub mod hwloc;
pub mod library;
mod lines;
pub mod lscpu;
pub mod model;
pub mod moves;
mod part;
mod survey;
#[doc(hidden)]
pub mod testing;

pub use detect::{CapacitySource, Host, detect};
pub use error::{MachineError, Problem};
pub use format::schema;
pub use hardware::{ByDistance, ContendedLine, Core, Footprint, Hardware, IdleState};
pub use library::resolve;
pub use model::{Cpu, Distance, MAX_CPUS, Machine};
pub use part::SplitError;
pub use survey::import;

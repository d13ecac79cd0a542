// SPDX-License-Identifier: GPL-2.0-or-later
//! Which CPU? The policy of `policy/`, compiled natively, behind a safe face.
//!
//! [`Topology`] is the kernel's view of a machine, [`Host`] the state that a policy may ask
//! about, [`Policy`] the modes and the era, and [`Host::select`] one decision with its reason.

mod cache;
mod face;
mod ffi;
mod group;
mod host;
mod image;
mod mask;
mod mechanism;
mod mode;
mod overload;
mod policy;
mod question;
mod reason;
#[doc(hidden)]
pub mod testing;
mod topology;

pub use cache::{CacheStep, LlcLoad, Move, ProcessId};
pub use group::GroupId;
pub use host::{CpuState, Host, TaskState, Verdict, Wake};
pub use image::Image;
pub use mask::CpuMask;
pub use mechanism::{Mechanism, Premise, Recording, Setting, mechanisms_in_words};
pub use mode::{ERAS, Era, Mode, Modes, ParseError, Rules};
pub use overload::{Layout, Level as OverloadLevel, Memory, OutOfMemory, Overload, Reading};
pub use policy::{Policy, PolicyImage};
pub use question::{Answer, Batch};
pub use reason::{Class as ReasonClass, Reason};
pub use topology::{DomainView, Level, SetView, Topology, TopologyImage};

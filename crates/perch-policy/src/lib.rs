// SPDX-License-Identifier: GPL-2.0-or-later
//! Which CPU? The policy of `policy/`, compiled natively, behind a safe face.
//!
//! [`Topology`] is the kernel's view of a machine, [`Host`] the state that a policy may ask
//! about, [`Policy`] the modes and the era, and [`Host::select`] one decision with its reason.

mod cache;
mod era;
mod face;
mod ffi;
mod host;
mod image;
mod load;
mod mask;
mod mechanism;
pub mod mirror;
mod mode;
mod modes;
mod overload;
mod policy;
mod question;
mod reason;
mod task;
#[doc(hidden)]
pub mod testing;
mod topology;
mod wake;

pub use cache::{CacheStep, Move};
pub use era::{CHANGES, Change, Changes, ERAS, Era, Row as ChangeRow, Rules};
pub use host::Host;
pub use image::Image;
pub use load::{CpuState, LlcLoad};
pub use mask::CpuMask;
pub use mechanism::{Mechanism, Premise, Recording, Setting, mechanisms_in_words};
pub use mode::{Mode, ParseError};
pub use modes::Modes;
pub use overload::{Layout, Level as OverloadLevel, Memory, OutOfMemory, Overload, Reading};
pub use policy::Policy;
pub use question::{Answer, Batch};
pub use reason::{Class as ReasonClass, Reason};
pub use task::{GroupId, ProcessId, TaskState};
pub use topology::{DomainView, Level, SetView, Topology};
pub use wake::{Verdict, Wake};

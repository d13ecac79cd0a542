// SPDX-License-Identifier: GPL-2.0-or-later
//! What the live scheduler is asked for, and the memory with which its BPF program starts. It loads
//! nothing: the loader is perch-scheduler, and the simulated kernel has the program compiled natively.
//!
//! [`Settings`] say what is asked for, [`Plan`] lays a machine's shape out in a BPF arena, and
//! [`interface`] has the structures of `bpf/interface.h`, which the program and its loader share.

mod abilities;
mod arena;
mod band;
pub mod described;
pub mod interface;
mod partial;
mod places;
pub mod rule;
pub mod settings;
mod value;

pub use abilities::Abilities;
pub use arena::{IDLE, LIMITS, Plan, idle_cpu};
pub use band::Band;
pub use partial::Partial;
pub use places::{GroupPlaces, Places};
pub use rule::{CgroupError, CommError, RuleError, User};
pub use settings::{Configuration, Settings, SettingsError};

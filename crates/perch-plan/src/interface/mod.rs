// SPDX-License-Identifier: GPL-2.0-or-later
//! The structures that the loader and the BPF program share: `bpf/interface.h`, as scripts/mirrors
//! has it, by shorter names.

#[rustfmt::skip]
#[allow(missing_docs, non_camel_case_types, dead_code, clippy::all)]
#[allow(clippy::undocumented_unsafe_blocks)]
mod generated;

pub use generated::{
    PERCH_ARENA_BASE as ARENA_BASE, PERCH_BAND_CGROUP as BAND_CGROUP, PERCH_BAND_COMM as BAND_COMM,
    PERCH_BAND_NICE as BAND_NICE, PERCH_BAND_USER as BAND_USER, PERCH_NONE as NONE,
    perch_band as Band, perch_config as Config, perch_cpu as Cpu, perch_exit as Exit,
    perch_group_cell as GroupCell, perch_group_slot as Group, perch_group_waits as GroupWaits,
    perch_idle as Idle, perch_llc as Llc, perch_memory as Memory, perch_slot as Slot,
    perch_wait as Wait, perch_waits as Waits,
};
pub use perch_policy::mirror::{Occupancy, Overload, Process, Seat};

/// How many events a CPU has counters for.
pub const MAX_EVENTS: usize = generated::PERCH_MAX_EVENTS as usize;
/// How many reasons a CPU has counters for.
pub const MAX_REASONS: usize = generated::PERCH_MAX_REASONS as usize;
/// How many buckets a CPU has for the waits of one reason.
pub const WAIT_BUCKETS: usize = generated::PERCH_WAIT_BUCKETS as usize;
/// How many rules the real-time band may have.
pub const MAX_BANDS: usize = generated::PERCH_MAX_BANDS as usize;
/// Bytes of a rule's command name, its 0 included.
pub const BAND_GLOB: usize = generated::PERCH_BAND_GLOB as usize;
/// Bytes of a rule's cgroup path.
pub const BAND_PATH: usize = generated::PERCH_BAND_PATH as usize;
/// Bytes of one folder's name in such a path, its 0 included.
pub const BAND_NAME: usize = generated::PERCH_BAND_NAME as usize;

macro_rules! counted {
    ($of:ident, $about:literal: $($variant:ident = $name:literal, $help:literal;)*) => {
        #[doc = $about]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(usize)]
        pub enum $of { $(#[doc = $help] $variant,)* }

        impl $of {
            /// All of them, by number.
            pub const ALL: &'static [$of] = &[$($of::$variant,)*];

            /// The name under which it is counted.
            pub fn name(self) -> &'static str {
                match self { $($of::$variant => $name,)* }
            }

            /// What is counted, in a few words.
            pub fn help(self) -> &'static str {
                match self { $($of::$variant => $help,)* }
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/counted.rs"));

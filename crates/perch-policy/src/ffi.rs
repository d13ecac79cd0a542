// SPDX-License-Identifier: GPL-2.0-or-later
//! The C of policy/ as Rust sees it, by shorter names. Only this crate's safe face calls it; its
//! structures know no type of the face.

#[rustfmt::skip]
#[allow(
    missing_docs,
    non_camel_case_types,
    dead_code,
    unused_imports,
    clippy::all,
    clippy::undocumented_unsafe_blocks
)]
pub(crate) mod generated;

pub(crate) use generated::{
    perch_epoch as Epoch, perch_host as Host, perch_modes as Modes, perch_native_account,
    perch_native_check, perch_native_domain as Domain, perch_native_draws, perch_native_due,
    perch_native_group as Group, perch_native_level, perch_native_llc as Llc, perch_native_move,
    perch_native_note, perch_native_overload_clear, perch_native_overload_free,
    perch_native_overload_home, perch_native_overload_init, perch_native_overload_read,
    perch_native_overload_set, perch_native_place as Place, perch_native_scan, perch_native_select,
    perch_native_set as Set, perch_native_turn, perch_occupancy as Occupancy,
    perch_overload as Overload, perch_overload_memory as OverloadMemory, perch_policy as Policy,
    perch_process as Process, perch_question as Question, perch_rules as Rules, perch_seat as Seat,
    perch_topology as Topology, perch_verdict as Verdict, perch_wake as Wake,
};

/// No CPU, no mask, no domain.
pub(crate) const NONE: u32 = generated::PERCH_NONE;
/// How many domains a CPU may be in.
pub(crate) const MAX_LEVELS: usize = generated::PERCH_MAX_LEVELS as usize;

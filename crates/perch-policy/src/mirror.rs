// SPDX-License-Identifier: GPL-2.0-or-later
//! C's structures for crates that lay them out in memory of their own: the live scheduler's loader
//! does so in the arena of its BPF program. Every field is a number; a pointer of C is the address
//! to which it leads there.

pub use crate::ffi::generated::{
    perch_occupancy as Occupancy, perch_overload as Overload, perch_policy as Policy,
    perch_process as Process, perch_seat as Seat, perch_topology as Topology,
};

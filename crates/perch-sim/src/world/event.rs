// SPDX-License-Identifier: GPL-2.0-or-later
//! The kinds of events. Of the events of one moment the earlier arrival goes first, whatever its
//! kind; with a workload that has mutexes the lower kind and then the lower key, see
//! `program/streak.rs`. Kinds 0, 1, 4 and 7 are the scheduler's own.

/// A sleeping task's timer fires.
pub const TIMER: u8 = 2;
/// A task appears by itself.
pub const FORK: u8 = 3;
/// An interrupt for a vCPU: its tick, or a packet.
pub const VCPU: u8 = 5;
/// A packet arrives, from another computer or there.
pub const PACKET: u8 = 6;

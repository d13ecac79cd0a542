// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of recordings made into workloads: random ones, one written by hand, and files that are
//! damaged.

mod damaged;
mod fixture;
mod perfdata;
mod perfetto;
mod pftrace;
mod random;
mod tracedat;

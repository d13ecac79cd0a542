// SPDX-License-Identifier: GPL-2.0-or-later
//! Machines: what a file may say, the library, drawings, and what somebody surveyed: a kernel
//! (sysfs), hwloc (XML).

mod common;
mod cpulist;
mod detect;
mod drawings;
mod hwloc;
mod library;
mod refusals;
mod round_trip;

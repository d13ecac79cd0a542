// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of machines: of the contents of a file, of the library, of drawings, and of surveys by a
//! kernel (sysfs), by hwloc (XML) and by lscpu.

mod capacities;
mod common;
mod cpulist;
mod detect;
mod drawings;
mod hwloc;
mod library;
mod lscpu;
mod others;
mod parts;
mod refusals;
mod round_trip;

// SPDX-License-Identifier: GPL-2.0-or-later
//! Machines that somebody surveyed: a kernel (sysfs), hwloc (XML).

mod common;
mod detect;
mod hwloc;

// SPDX-License-Identifier: GPL-2.0-or-later
//! Words of specs that more than one file needs.

/// The name of workloads that `perch import` wrote: `recorded:FILE`.
pub const RECORDED: &str = "recorded";
/// The name of workloads that are files of rt-app: `rtapp:FILE`.
pub const RTAPP: &str = "rtapp";
/// The key of `vm` whose value is a workload, with commas of its own.
pub const INSIDE: &str = "inside";

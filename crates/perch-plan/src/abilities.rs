// SPDX-License-Identifier: GPL-2.0-or-later
//! What kernels differ in.

/// What some kernels do and others do not, by which perch chooses its callbacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// The kernel takes a task back by itself that was put on a CPU and cannot run there
    /// (`SCX_ENQ_IMMED`, Linux 7.1).
    pub takes_back: bool,
    /// It tells a scheduler of `cpu.max` (Linux 6.17).
    pub limits: bool,
    /// It tells a scheduler when `cpu.idle` changes (Linux 7.2).
    pub idle_groups: bool,
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine and the program that a recording comes from.

/// What the file says of its machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Which program wrote it.
    pub tool: &'static str,
    /// The kernel's release, if that is in the file.
    pub release: Option<String>,
    /// The CPUs, if they are.
    pub cpus: Option<u32>,
    /// Events that the recorder says were lost.
    pub lost: u64,
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine and the program that a recording comes from.

/// The facts about the recorded machine that the file gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The program that wrote the file.
    pub tool: &'static str,
    /// The kernel's release, if the file has it.
    pub release: Option<String>,
    /// The number of CPUs, if the file has it.
    pub cpus: Option<u32>,
    /// The number of events that were lost, by the recorder's count.
    pub lost: u64,
}

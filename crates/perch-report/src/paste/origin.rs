// SPDX-License-Identifier: GPL-2.0-or-later
//! The command that brings figures back.

/// Where figures come from, for those who meet them far from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// perch's version.
    pub version: String,
    /// The command line that brings them back.
    pub command: String,
}

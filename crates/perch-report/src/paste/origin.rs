// SPDX-License-Identifier: GPL-2.0-or-later
//! The command that brings figures back.

/// The origin of figures, for readers who meet the figures far from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// perch's version.
    pub version: String,
    /// The command line that brings the figures back.
    pub command: String,
}

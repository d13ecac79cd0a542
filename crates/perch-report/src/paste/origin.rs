// SPDX-License-Identifier: GPL-2.0-or-later
//! The command that brings figures back.

use serde::Serialize;

/// The origin of figures, for readers who meet the figures far from here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// perch's version.
    #[serde(rename = "perch")]
    pub version: String,
    /// The command line that brings the figures back.
    pub command: String,
}

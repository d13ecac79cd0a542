// SPDX-License-Identifier: GPL-2.0-or-later
//! How a mechanism behaves.

use std::fmt;
use std::str::FromStr;

use crate::ffi::generated::{PERCH_OFF, PERCH_PERCH, PERCH_POSTED, PERCH_UPSTREAM};

/// How a mechanism behaves (docs/mechanisms/README.md#modes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Mode {
    /// As if the mechanism had never been written.
    #[default]
    Off = PERCH_OFF as u8,
    /// As in its source, defects and all: what the published table was measured with.
    Posted = PERCH_POSTED as u8,
    /// As Linux 7.2 has it.
    Upstream = PERCH_UPSTREAM as u8,
    /// With the known defects fixed.
    Perch = PERCH_PERCH as u8,
}

impl Mode {
    /// Every mode, in the order in which tables show them.
    pub const ALL: [Mode; 4] = [Mode::Off, Mode::Posted, Mode::Upstream, Mode::Perch];

    /// The word that `--set` takes.
    pub fn name(self) -> &'static str {
        ["off", "posted", "upstream", "perch"][self as usize]
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The reason why a mechanism, a mode or an era was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(pub(crate) String);

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseError {}

impl FromStr for Mode {
    type Err = ParseError;

    fn from_str(s: &str) -> Result<Mode, ParseError> {
        Mode::ALL.into_iter().find(|m| m.name() == s).ok_or_else(|| {
            ParseError(format!("unknown mode \"{s}\": expected off, posted, upstream or perch"))
        })
    }
}

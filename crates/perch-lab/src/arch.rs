// SPDX-License-Identifier: GPL-2.0-or-later
//! The two architectures that guests have.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// An instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arch {
    /// x86-64.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

impl Arch {
    /// The architecture that this program was built for; `None` when it is neither of the two.
    pub fn host() -> Option<Arch> {
        std::env::consts::ARCH.parse().ok()
    }

    /// Debian's name of the architecture.
    pub(crate) fn debian(self) -> &'static str {
        match self {
            Arch::X86_64 => "amd64",
            Arch::Aarch64 => "arm64",
        }
    }

    /// The folder below `lib` that Debian gives its libraries.
    pub(crate) fn multiarch(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86_64-linux-gnu",
            Arch::Aarch64 => "aarch64-linux-gnu",
        }
    }
}

impl fmt::Display for Arch {
    /// Writes the kernel's and QEMU's name of the architecture.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Arch::X86_64 => "x86_64",
            Arch::Aarch64 => "aarch64",
        })
    }
}

impl FromStr for Arch {
    type Err = Error;

    fn from_str(text: &str) -> Result<Arch, Error> {
        match text {
            "x86_64" | "amd64" => Ok(Arch::X86_64),
            "aarch64" | "arm64" => Ok(Arch::Aarch64),
            _ => Err(Error::Input(format!(
                "`{text}` is no architecture of guests; they are amd64 and arm64"
            ))),
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The commands that this build leaves out: a small perch is built first, since it takes less
//! than half of the time of the whole one.

use std::ffi::OsString;

use crate::output::Failure;

/// The version of a build that lacks features. The script `x` looks for the words behind the number.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (not all commands)");

/// The commands that need a feature, and whether this build has it.
const ALL: &[(&str, bool)] = &[
    ("doctor", cfg!(feature = "live")),
    ("run", cfg!(feature = "live")),
    ("trial", cfg!(feature = "live")),
    ("scx", cfg!(feature = "live")),
    ("stats", cfg!(feature = "live")),
    ("top", cfg!(feature = "live")),
    ("record", cfg!(feature = "record")),
    ("replay", cfg!(feature = "record")),
    ("advise", cfg!(feature = "record")),
    ("import", cfg!(feature = "record")),
    ("lab", cfg!(feature = "lab")),
    ("report", cfg!(feature = "pages")),
];

fn missing() -> impl Iterator<Item = &'static str> {
    ALL.iter().filter(|(_, is_here)| !is_here).map(|(name, _)| *name)
}

/// The end of `perch --help`.
pub fn help() -> String {
    let names: Vec<&str> = missing().collect();
    format!("This build leaves out {}; `./x build` makes the whole perch.", names.join(", "))
}

/// Refuses a command that is not one of this build's.
pub fn refuse(words: &[OsString]) -> Result<(), Failure> {
    let name = words[0].to_string_lossy();
    Err(Failure::input(if missing().any(|known| known == name) {
        format!("this build leaves out `perch {name}`; `./x build` makes the whole perch")
    } else {
        format!("there is no command `{name}`; perch --help lists them")
    }))
}

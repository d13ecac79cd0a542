// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch eras`: the changes of Linux that the simulation follows.

use std::fmt::Write;

use perch_policy::CHANGES;

use crate::output::{Failure, emit};

/// Carries out `perch eras`.
pub fn run() -> Result<(), Failure> {
    let mut text = String::new();
    for row in CHANGES {
        let commit = match row.commit {
            "" => String::new(),
            commit => format!(" ({commit})"),
        };
        let _ = writeln!(text, "{:<5} {}{commit}", row.since.to_string(), row.name);
        let _ = writeln!(text, "      why: {}", row.why);
        if !row.doubt.is_empty() {
            let _ = writeln!(text, "      the date: {}", row.doubt);
        }
    }
    emit(text.trim_end())
}

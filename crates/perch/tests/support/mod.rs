// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs the command.

use std::process::{Command, Output, Stdio};

/// Runs perch with these arguments and nothing on stdin.
pub fn perch(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perch"));
    command.args(arguments).stdin(Stdio::null()).output().expect("the program was built")
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch completions` and `perch man`: completions for shells, and manual pages. Both are made
//! from the command's own definitions, so they always agree with the command.

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::output::{Failure, emit};

/// The arguments of `perch completions`.
#[derive(Args)]
pub struct CompletionsArguments {
    /// bash, elvish, fish, powershell or zsh
    shell: Shell,
}

/// Prints the completions for a shell.
pub fn completions(mut command: Command, arguments: &CompletionsArguments) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "perch", &mut script);
    let script = String::from_utf8(script);
    emit(&script.expect("names and help texts are UTF-8"))
}

/// The arguments of `perch man`.
#[derive(Args)]
pub struct ManArguments {
    /// A directory for perch.1 and a page for each command; it is made where there is none
    directory: PathBuf,
}

/// Writes the pages.
pub fn man(command: Command, arguments: &ManArguments) -> Result<(), Failure> {
    let directory = &arguments.directory;
    let failure = |what: &str, error: std::io::Error| {
        let hint = match error.kind() {
            ErrorKind::PermissionDenied => "; name a directory that you may write to",
            _ => "",
        };
        Failure::run(format!("cannot {what} {}: {error}{hint}", directory.display()))
    };
    std::fs::create_dir_all(directory).map_err(|error| failure("make", error))?;
    clap_mangen::generate_to(command, directory).map_err(|error| failure("write pages to", error))
}

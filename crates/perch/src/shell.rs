// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch completions` and `perch man`: what shells and readers of manuals want of the command, made
//! from its own definitions, so that neither can say what it does not do.

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::output::{Failure, emit};

/// For which shell.
#[derive(Args)]
pub struct CompletionsArguments {
    /// bash, elvish, fish, powershell or zsh
    shell: Shell,
}

/// Prints what the shell reads.
pub fn completions(mut command: Command, arguments: &CompletionsArguments) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "perch", &mut script);
    let script = String::from_utf8(script);
    emit(&script.expect("names and help texts are UTF-8"))
}

/// Where to.
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
        Failure::run(format!(
            "cannot {what} {}: {error}{hint}",
            directory.display()
        ))
    };
    std::fs::create_dir_all(directory).map_err(|error| failure("make", error))?;
    clap_mangen::generate_to(command, directory).map_err(|error| failure("write pages to", error))
}

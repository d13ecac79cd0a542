// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch scx`: other schedulers of sched_ext, for the simulated kernel.

use std::path::PathBuf;

use clap::Subcommand;
use perch_scx::{ForeignError, Package};

use crate::output::{Failure, say};

/// The subcommands of `perch scx`.
#[derive(Subcommand)]
pub enum Command {
    /// Compile a scheduler of github.com/sched-ext/scx for perch compare --arm NAME=scx:FILE
    Build {
        /// The scheduler's folder in your checkout, for example scheds/rust/scx_cosmos, or its
        /// C file
        path: PathBuf,
        /// The file to write [default: NAME.scx here]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// A TOML file of what the scheduler's loader sets, in place of perch's own for a scheduler
        /// of this name
        #[arg(long, value_name = "FILE")]
        set: Option<PathBuf>,
    },
}

impl From<ForeignError> for Failure {
    fn from(error: ForeignError) -> Failure {
        Failure::input(error.to_string())
    }
}

/// Carries out `perch scx`.
pub fn run(command: Command) -> Result<(), Failure> {
    let Command::Build { path, output, set } = command;
    let package = Package::build(&path, set.as_deref())?;
    for note in &package.notes {
        say(note);
    }
    let output = output.unwrap_or_else(|| PathBuf::from(format!("{}.scx", package.name)));
    package.write(&output)?;
    say(format_args!(
        "{} is in {}; run it by perch compare --arm {}=scx:{}",
        package.name,
        output.display(),
        package.name,
        output.display()
    ));
    Ok(())
}

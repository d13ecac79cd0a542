// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch report` writes results as one file for a browser.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use perch_report::{Results, html};

use crate::fresh;
use crate::output::{Failure, emit_data};
use crate::results::results;

/// The arguments of `perch report`.
#[derive(Args)]
pub struct Arguments {
    /// Results of perch experiment run or perch compare with --format json; - is stdin
    #[arg(required = true, value_name = "RESULT", value_hint = ValueHint::FilePath)]
    results: Vec<PathBuf>,
    /// Where to write the page [default: stdout]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

/// Carries out `perch report`.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let results: Vec<Results> =
        arguments.results.iter().map(|path| results(path)).collect::<Result<_, _>>()?;
    let page = html(&results, env!("CARGO_PKG_VERSION"));
    match &arguments.output {
        None => emit_data(&page),
        Some(path) => fresh::write(path, &page),
    }
}

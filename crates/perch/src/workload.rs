// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch workload`: the workloads that perch simulates.

use clap::Subcommand;
use perch_report::Grid;

use crate::output::{Failure, emit};

/// The subcommands of `perch workload`.
#[derive(Subcommand)]
pub enum Command {
    /// Name the workloads and their keys
    List,
}

/// Carries out `perch workload`.
pub fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::List => list(),
    }
}

fn list() -> Result<(), Failure> {
    let mut grid = Grid::new(&["name", "keys"], &[]);
    for (name, help) in perch_workload::names() {
        grid.row(vec![name.to_string(), help.to_string()]);
    }
    let common = perch_workload::COMMON_KEYS;
    emit(&format!("{}\nEvery workload also has {common}.\n", grid.text()))
}

// SPDX-License-Identifier: GPL-2.0-only
//! `perch workload`: what can be simulated.

use clap::Subcommand;
use perch_report::{Align, Grid};

use crate::output::{Failure, emit};

/// What to do with workloads.
#[derive(Subcommand)]
pub enum Command {
    /// Name the workloads and their keys
    List,
}

/// Does it.
pub fn run(command: Command) -> Result<(), Failure> {
    let Command::List = command;
    let mut grid = Grid::default();
    grid.column("", "name", Align::Left);
    grid.column("", "keys", Align::Left);
    for (name, help) in perch_sim::workload::names() {
        grid.row(vec![name.to_string(), help.to_string()]);
    }
    let common = perch_sim::workload::COMMON_KEYS;
    emit(&format!(
        "{}\nEvery workload also has {common}.\n",
        grid.text()
    ))
}

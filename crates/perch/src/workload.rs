// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch workload`: the workloads that perch simulates.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use perch_report::{Align, Grid};
use perch_workload::rtapp::export;
use perch_workload::{Budget, Workload};

use crate::fresh;
use crate::output::{Failure, emit};

/// The subcommands of `perch workload`.
#[derive(Subcommand)]
pub enum Command {
    /// Name the workloads and their keys
    List,
    /// Write a workload as a file for rt-app, where rt-app has words for all of it
    RtApp(RtAppArguments),
}

/// The arguments of `perch workload rt-app`.
#[derive(Args)]
pub struct RtAppArguments {
    /// A workload with its keys (perch workload list), for example runsleep:tasks=4
    workload: String,
    /// The machine that it is for, by name (perch machine list), or a TOML file
    #[arg(short, long, value_name = "MACHINE")]
    machine: String,
    /// The file [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write random times as their mean, times to the microsecond, and processes as threads of one
    #[arg(long)]
    approximate: bool,
    /// Memory that the workload's tasks may take, as perch foresees it
    #[arg(long, default_value_t = Budget::DEFAULT, value_name = "MEMORY")]
    budget: Budget,
}

/// Carries out `perch workload`.
pub fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::List => list(),
        Command::RtApp(arguments) => rt_app(&arguments),
    }
}

fn list() -> Result<(), Failure> {
    let mut grid = Grid::default();
    grid.column("", "name", Align::Left);
    grid.column("", "keys", Align::Left);
    for (name, help) in perch_workload::names() {
        grid.row(vec![name.to_string(), help.to_string()]);
    }
    let common = perch_workload::COMMON_KEYS;
    emit(&format!(
        "{}\nEvery workload also has {common}.\n",
        grid.text()
    ))
}

fn rt_app(arguments: &RtAppArguments) -> Result<(), Failure> {
    let machine = perch_machine::resolve(&arguments.machine)?;
    let workload = Workload::parse_within(&arguments.workload, &machine, arguments.budget)
        .map_err(|error| Failure::input(error.to_string()))?;
    let text = export(&workload, &machine, arguments.approximate)
        .map_err(|why| Failure::input(format!("{}: {why}", arguments.workload)))?;
    match &arguments.output {
        None => emit(&text),
        Some(file) => fresh::write(file, &text),
    }
}

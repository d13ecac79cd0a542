// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch machine`: the machines that perch knows, and how to describe another one.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use perch_lab::Topology;
use perch_machine::{library, resolve};
use perch_report::{Align, Grid};

use crate::lab::{Limit, left_out, limit};
use crate::output::{Failure, emit};

/// The subcommands of `perch machine`.
#[derive(Subcommand)]
pub enum Command {
    /// Name the machines that perch carries
    List,
    /// Draw a machine
    Show {
        /// A machine by name, or a TOML file
        name: String,
        /// Write its TOML file instead, to start another one from
        #[arg(long)]
        toml: bool,
        /// Show the part of it that a guest of `perch lab --cpus N` has
        #[arg(long, value_name = "N", value_parser = limit)]
        cpus: Option<Limit>,
    },
    /// Write the TOML file of this machine, or of the one whose /sys was copied
    Detect {
        /// The directory that holds the copied tree's `sys`
        #[arg(long, value_name = "DIR", default_value = "/")]
        root: PathBuf,
        /// Split each last-level cache into N, of whole cores
        #[arg(long, value_name = "N", default_value_t = 1)]
        split_llc: usize,
    },
    /// Write the TOML file of the machine in hwloc's XML (lstopo FILE.xml)
    Import {
        /// The XML file
        file: PathBuf,
    },
}

/// Carries out `perch machine`.
pub fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::List => list(),
        Command::Show { name, toml, cpus } => show(&name, toml, cpus),
        Command::Detect { root, split_llc } => detect(&root, split_llc),
        Command::Import { file } => emit(&perch_machine::import(&file)?.to_toml()),
    }
}

fn detect(root: &Path, parts: usize) -> Result<(), Failure> {
    let machine = perch_machine::detect(root)?.split_llcs(parts);
    let machine = machine.map_err(|error| Failure::input(format!("--split-llc: {error}")))?;
    emit(&machine.to_toml())
}

fn show(name: &str, toml: bool, cpus: Option<Limit>) -> Result<(), Failure> {
    let mut machine = resolve(name)?;
    if let Some(Limit(cpus)) = cpus {
        let topology = Topology::new(&machine, cpus)?;
        // Where stderr is closed, nobody is left to be told.
        let _ = std::io::stderr().write_all(left_out(&topology).as_bytes());
        machine = topology.machine().clone();
    }
    match toml {
        true => emit(&machine.to_toml()),
        false => emit(&perch_machine::draw::draw(&machine, terminal_width())),
    }
}

/// Columns of the terminal, or as many as a mail can show where stdout is none.
fn terminal_width() -> usize {
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => 100,
    }
}

fn list() -> Result<(), Failure> {
    let mut grid = Grid::default();
    grid.column("", "name", Align::Left);
    for name in ["CPUs", "cores", "clusters", "LLCs", "nodes"] {
        grid.column("", name, Align::Right);
    }
    grid.column("", "about", Align::Left);
    for name in library::names() {
        let machine = library::load(name)?;
        let counts = [
            machine.cpus.len(),
            machine.cores(),
            machine.clusters(),
            machine.llcs(),
            machine.nodes(),
        ];
        let mut row = vec![machine.name.clone()];
        row.extend(counts.map(|count| count.to_string()));
        row.push(machine.description.clone());
        grid.row(row);
    }
    emit(&grid.text())
}

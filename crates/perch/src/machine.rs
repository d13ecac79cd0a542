// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch machine`: the machines that perch knows, and how to describe another one.

use std::path::{Path, PathBuf};

use clap::Subcommand;
#[cfg(feature = "lab")]
use perch_lab::Topology;
use perch_machine::{Machine, library, resolve};
use perch_report::{Align, Grid};

#[cfg(feature = "lab")]
use crate::lab::{Limit, limit, say_left_out};
use crate::output::{Failure, emit, emit_data};

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
        #[cfg(feature = "lab")]
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
    /// Write the TOML file of the machine in hwloc's XML (lstopo FILE.xml) or lscpu's text (lscpu -p)
    Import {
        /// The file
        file: PathBuf,
    },
}

/// Carries out `perch machine`.
pub fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::List => list(),
        #[cfg(feature = "lab")]
        Command::Show { name, toml, cpus: Some(Limit(cpus)) } => {
            show(&seen_in_guest(&name, cpus)?, toml)
        }
        Command::Show { name, toml, .. } => show(&resolve(&name)?, toml),
        Command::Detect { root, split_llc } => detect(&root, split_llc),
        Command::Import { file } => emit_data(&perch_machine::import(&file)?.to_toml()),
    }
}

fn detect(root: &Path, parts: usize) -> Result<(), Failure> {
    let machine = perch_machine::detect(root)?.split_llcs(parts);
    let machine = machine.map_err(|error| Failure::input(format!("--split-llc: {error}")))?;
    emit_data(&machine.to_toml())
}

/// The part of a machine that a guest of so many CPUs has; says what that leaves out.
#[cfg(feature = "lab")]
fn seen_in_guest(name: &str, cpus: perch_lab::Cpus) -> Result<Machine, Failure> {
    let topology = Topology::new(&resolve(name)?, cpus)?;
    say_left_out(&topology);
    Ok(topology.machine().clone())
}

fn show(machine: &Machine, toml: bool) -> Result<(), Failure> {
    if toml {
        emit_data(&machine.to_toml())
    } else {
        emit(&perch_machine::draw::draw(machine, terminal_width()))
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
    let mut grid = Grid::new(&["name"], &["CPUs", "cores", "clusters", "LLCs", "nodes"]);
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

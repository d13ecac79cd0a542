// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch simulate`: one simulation, of a file, as a sweep's workers make it.

use std::path::PathBuf;

use clap::Args;
use perch_experiment::{Limits, Simulation, Trust};
use perch_file::Kind;
use perch_report::trust_lines;
use perch_workload::Budget;

use crate::arguments::AllowScx;
use crate::compare::say_notes;
use crate::output::{Failure, emit, say};

/// The arguments of `perch simulate`.
#[derive(Args)]
pub struct Arguments {
    /// The simulation in JSON: machine, workload, era, modes, effort, seed (docs/sweeps.md)
    #[arg(value_name = "SPEC.json")]
    file: PathBuf,
    /// A store: take the result from it if it is there, else keep it there
    #[arg(long, value_name = "FOLDER")]
    store: Option<PathBuf>,
    /// Memory that the workload's tasks and the scores may take; what asks for more is refused
    #[arg(long, default_value_t = Budget::DEFAULT, value_name = "MEMORY")]
    budget: Budget,
    #[command(flatten)]
    scx: AllowScx,
}

/// Carries out `perch simulate`.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let origin = arguments.file.display().to_string();
    let text = perch_file::text(&arguments.file, Kind::EXPERIMENT)
        .map_err(|error| Failure::input(error.to_string()))?;
    let limits = Limits { budget: arguments.budget, ..arguments.scx.limits() };
    let prepared = Simulation::from_json(&text, &origin)?.prepare(&origin, limits)?;
    let (machine, workload) = (prepared.machine()?, prepared.asked.workload.clone());
    let stored = prepared.stored(arguments.store.as_deref())?;
    emit(&stored.to_json())?;
    // Not in the JSON, which is the store's: what is known of a machine changes, and a result does not.
    let trust = Trust::of(&machine, &workload);
    let lines = trust_lines(&trust, &machine.name);
    lines.into_iter().for_each(say);
    say_notes(&workload, &machine, arguments.budget)
}

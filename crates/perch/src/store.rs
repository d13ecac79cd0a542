// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch store`: the folder in which sweeps keep their results.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use perch_experiment::{Key, Shard, Store, Stored, Sweep};
use perch_report::write_csv;

use crate::arguments::AllowScx;
use crate::output::{Failure, emit, emit_data, say};

/// The commands of `perch store`.
#[derive(Subcommand)]
pub enum Command {
    /// Read every result, and say which files are not as they were written
    Verify(StoreArguments),
    /// Remove results of other models, of other sweeps, and files that were never finished
    Prune(PruneArguments),
    /// Print all results
    Export(ExportArguments),
}

/// The store that a command is about.
#[derive(Args)]
pub struct StoreArguments {
    /// The folder
    #[arg(value_name = "FOLDER")]
    store: PathBuf,
}

/// The arguments of `perch store prune`.
#[derive(Args)]
pub struct PruneArguments {
    /// The folder; no sweep may run on it meanwhile
    #[arg(value_name = "FOLDER")]
    store: PathBuf,
    /// Also remove what none of these sweeps asks for
    #[arg(long = "keep", value_name = "SWEEP.toml")]
    sweeps: Vec<PathBuf>,
    #[command(flatten)]
    scx: AllowScx,
}

/// The arguments of `perch store export`.
#[derive(Args)]
pub struct ExportArguments {
    /// The folder
    #[arg(value_name = "FOLDER")]
    store: PathBuf,
    /// How to write them: csv, a line a score and repetition; or json, a line a result
    #[arg(long, value_enum, default_value_t)]
    format: ExportFormat,
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum ExportFormat {
    #[default]
    Csv,
    Json,
}

/// Carries out a command of `perch store`.
pub fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Verify(arguments) => verify(&arguments.store),
        Command::Prune(arguments) => prune(&arguments),
        Command::Export(arguments) => export(&arguments),
    }
}

fn verify(folder: &Path) -> Result<(), Failure> {
    let store = Store::existing(folder)?;
    let faults = store.verify()?;
    for fault in &faults {
        say(format_args!("{}: {}", fault.path, fault.reason));
    }
    let results = store.keys()?.len();
    match faults.len() {
        0 => emit(&format!("{results} results, all as they were written\n")),
        faults => Err(Failure::run(format!(
            "{faults} files of {} are not as they were written: remove them, and a sweep makes \
             them again",
            folder.display()
        ))),
    }
}

fn prune(arguments: &PruneArguments) -> Result<(), Failure> {
    let mut wanted: BTreeSet<Key> = BTreeSet::new();
    for sweep in &arguments.sweeps {
        let simulations =
            Sweep::from_file(sweep)?.within(arguments.scx.limits()).simulations(Shard::WHOLE)?;
        wanted.extend(simulations.into_iter().map(|one| one.key));
    }
    let keeps_all = arguments.sweeps.is_empty();
    let pruned = Store::prune(&arguments.store, |key| keeps_all || wanted.contains(key))?;
    emit(&format!(
        "removed {} results and {} unfinished files\n",
        pruned.results, pruned.unfinished
    ))
}

fn export(arguments: &ExportArguments) -> Result<(), Failure> {
    let store = Store::existing(&arguments.store)?;
    if let ExportFormat::Csv = arguments.format {
        emit_data(
            "key,machine,changed,workload,era,modes,seed,repetition,score,unit,higher_is_better,value\n",
        )?;
    }
    for key in store.keys()? {
        let Some(stored) = store.get(&key)? else {
            continue;
        };
        match arguments.format {
            ExportFormat::Json => emit(&stored.to_json())?,
            ExportFormat::Csv => emit_data(&lines(&stored))?,
        }
    }
    Ok(())
}

/// Returns a line of CSV for each score and repetition of a result.
fn lines(stored: &Stored) -> String {
    let asked = &stored.simulation;
    let (machine, changed) = (asked.machine_name(), asked.changes());
    let mut records: Vec<Vec<String>> = Vec::new();
    for score in &stored.result.scores {
        records.extend(score.values.iter().enumerate().map(|(repetition, value)| {
            [
                stored.key.as_str(),
                machine,
                &changed,
                &asked.workload,
                &asked.era,
                &asked.modes,
                &asked.seed.to_string(),
                &repetition.to_string(),
                &score.name,
                &score.unit,
                &score.higher_is_better.to_string(),
                &value.to_string(),
            ]
            .map(str::to_string)
            .to_vec()
        }));
    }
    write_csv(&records)
}

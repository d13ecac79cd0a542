// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch experiment`: the published tables, reproduced side by side.

mod check;

use clap::{Args, Subcommand};
use perch_experiment::{Experiment, ExperimentError, RunOptions, library, machines};
use perch_report::{Align, Format, Grid, ResultFormat, experiments, paste_experiments};

use crate::arguments::{Common, Effort, at_least_one, origin};
use crate::meter::{Meter, Unit};
use crate::output::{Failure, emit, emit_as};
use check::CheckArguments;

/// The subcommands of `perch experiment`.
#[derive(Subcommand)]
pub enum Command {
    /// Name the experiments that perch carries
    List,
    /// Run experiments and show what was published beside what was simulated
    Run(RunArguments),
    /// Exit with 3 where a cell disagrees that agreed in a kept result
    Check(CheckArguments),
}

/// The arguments of `perch experiment run`.
#[derive(Args)]
pub struct RunArguments {
    /// Experiments by name, or TOML files
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    names: Vec<String>,
    /// Every experiment that perch carries
    #[arg(long)]
    all: bool,
    /// Only cells whose BENCHMARK/WHERE/ROW match; * and ? are wildcards
    #[arg(long, value_name = "GLOB")]
    only: Option<String>,
    /// How far to go on: as the experiment says, but at most some seconds of a core per row; longer until scores are steady and more often until
    /// cells are decided, each up to 4 times what the experiment says; or up to 32 times
    #[arg(long, value_enum, default_value_t, conflicts_with = "repetitions")]
    effort: Effort,
    /// Simulations per cell and arm (per table and arm where rows are statistics), instead of the
    /// experiment's own number; none are added while cells are undecided
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    repetitions: Option<u32>,
    /// Further arms beside baseline and patched: their names, or all
    #[arg(long, value_name = "ARM", value_delimiter = ',')]
    arms: Vec<String>,
    #[command(flatten)]
    common: Common,
}

/// Carries out `perch experiment`.
pub fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::List => list(),
        Command::Run(arguments) => run_all(&arguments),
        Command::Check(arguments) => check::run(&arguments),
    }
}

fn list() -> Result<(), Failure> {
    let mut grid = Grid::new(&["name", "machine", "Linux"], &["cells"]);
    grid.column("", "about", Align::Left);
    for name in library::names() {
        let experiment = library::resolve(name)?;
        grid.row(vec![
            experiment.name.clone(),
            machines(&experiment.loads).join(", "),
            experiment.era.to_string(),
            experiment.cells.len().to_string(),
            experiment.title.clone(),
        ]);
    }
    emit(&grid.text())
}

fn run_all(arguments: &RunArguments) -> Result<(), Failure> {
    let common = &arguments.common;
    let names: Vec<&str> = if arguments.all {
        library::names().collect()
    } else {
        arguments.names.iter().map(String::as_str).collect()
    };
    // perch reads every experiment before it runs the first, so that a mistake in the last shows at
    // once.
    let loaded: Vec<(&str, Experiment)> = names
        .into_iter()
        .map(|name| Ok((name, library::resolve_within(name, common.budget)?)))
        .collect::<Result<_, ExperimentError>>()?;
    let options = RunOptions {
        seed: common.seed,
        repetitions: arguments.repetitions,
        thoroughness: arguments.effort.into(),
        only: arguments.only.clone(),
        further: arguments.arms.clone(),
        jobs: common.jobs(),
        budget: common.budget,
    };
    let mut reports = Vec::new();
    for (name, experiment) in &loaded {
        let meter = Meter::new(&experiment.name, Unit::Each, common.quiet);
        let mut advance = |done, total| meter.advance(done as u64, total as u64);
        let report = perch_experiment::run(experiment, &options, &mut advance);
        // The error of a run names the cell, and the experiment by the name that its file has in it.
        let report = report.map_err(|error| Failure::from(error).of(name))?;
        meter.say_simulated(options.jobs);
        if let ResultFormat::Plain(format @ (Format::Table | Format::Markdown)) = common.format {
            // It stands by itself, and the next may take hours.
            let blank = if reports.is_empty() { "" } else { "\n" };
            let text = experiments(std::slice::from_ref(&report), format);
            emit_as(common.format, &format!("{blank}{text}"))?;
        }
        reports.push(report);
    }
    let whole = match common.format {
        ResultFormat::Plain(Format::Table | Format::Markdown) => return Ok(()),
        ResultFormat::Plain(format) => experiments(&reports, format),
        ResultFormat::Paste(paste) => paste_experiments(&reports, &origin(), paste),
    };
    emit_as(common.format, &whole)
}

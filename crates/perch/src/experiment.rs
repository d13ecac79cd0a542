// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch experiment`: the published tables, reproduced side by side.

mod check;

use std::time::Duration;

use clap::{Args, Subcommand};
use perch_experiment::{
    Experiment, ExperimentError, Report, RunOptions, foresee, library, machines,
};
use perch_report::{
    Align, Format, Grid, ResultFormat, experiments, paste_experiments, tables_so_far,
};

use crate::arguments::{Common, Effort, at_least_one, origin};
use crate::meter::{Meter, Unit};
use crate::output::{Failure, emit, emit_as, say};
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
    // Events bound a quick run, and trying its loads first would take a tenth of it.
    if !common.quiet && options.events_a_row().is_none() {
        say_how_long(&loaded, &options);
    }
    let mut reports = Vec::new();
    let mut shown = Shown::default();
    for (name, experiment) in &loaded {
        let meter = Meter::new(&experiment.name, Unit::Each, common.quiet);
        let advance = |done, total| meter.advance(done as u64, total as u64);
        let mut before = shown.begin(&reports, common.format);
        let mut table = |report: &Report| {
            meter.suspend(|| before.show_tables(report));
        };
        let report = perch_experiment::run_tables(experiment, &options, &advance, &mut table);
        // The error of a run names the cell, and the experiment by the name that its file has in it.
        let report = report.map_err(|error| Failure::from(error).of(name))?;
        reports.push(report);
        meter.say_simulated(options.jobs);
    }
    let whole = match common.format {
        ResultFormat::Plain(format) => experiments(&reports, format),
        ResultFormat::Paste(paste) => paste_experiments(&reports, &origin(), paste),
    };
    shown.show_rest(common.format, &whole)
}

/// A run that takes less needs no announcement.
const LONG: Duration = Duration::from_secs(10);

/// Says how long the run of the experiments will take, if that is long. Options that make no sense
/// are left to the run itself.
fn say_how_long(loaded: &[(&str, Experiment)], options: &RunOptions) {
    // By the time of this process on a CPU, for which other programs that run meanwhile do not count.
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let each = loaded.iter().map(|(_, experiment)| foresee(experiment, options, &now));
    let Ok(all) = each.sum::<Result<Duration, _>>() else {
        return;
    };
    if all >= LONG {
        let words = match all.as_secs() {
            seconds @ ..100 => format!("{seconds} s"),
            seconds => format!("{:.0} min", seconds as f64 / 60.0),
        };
        // Nobody knows before the first repetitions how many cells they leave undecided.
        let further = if !options.settles() {
            ""
        } else {
            ", and longer where scores are not steady or cells undecided"
        };
        say(format!("this will take about {words}, by a trial of each load{further}"));
    }
}

/// The part of the result that stdout has already.
#[derive(Default)]
struct Shown {
    bytes: usize,
    /// The first failure of stdout, which ends the command when the simulations are done.
    failure: Option<Failure>,
}

/// The result of one experiment as it grows behind those of the experiments that ran before.
struct Growing<'a> {
    shown: &'a mut Shown,
    /// The format, and the text of the earlier results; `None` for a format that is shown at the end.
    before: Option<(Format, String)>,
}

impl Growing<'_> {
    /// Shows the tables of `report` that are new.
    fn show_tables(&mut self, report: &Report) {
        let Some((format, before)) = &self.before else {
            return;
        };
        if let Some(tables) = tables_so_far(report, *format) {
            self.shown.show(ResultFormat::Plain(*format), &format!("{before}{tables}"));
        }
    }
}

impl Shown {
    /// Begins with the experiment that follows those of `reports`.
    fn begin(&mut self, reports: &[Report], format: ResultFormat) -> Growing<'_> {
        let before = match format {
            ResultFormat::Plain(format) => {
                let mut text = experiments(reports, format);
                if !reports.is_empty() {
                    text.push('\n');
                }
                Some((format, text))
            }
            ResultFormat::Paste(_) => None,
        };
        Growing { shown: self, before }
    }

    /// Shows what is left of the whole result.
    fn show_rest(mut self, format: ResultFormat, whole: &str) -> Result<(), Failure> {
        self.show(format, whole);
        self.failure.map_or(Ok(()), Err)
    }

    /// Shows the end of `text`, of which stdout has the beginning.
    fn show(&mut self, format: ResultFormat, text: &str) {
        if self.failure.is_none() {
            self.failure = emit_as(format, &text[self.bytes..]).err();
            self.bytes = text.len();
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch sweep`: many simulations, here or on the machines of a cluster, into one store.

mod rank;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use perch_experiment::{Advance, Limits, Shard, Store, Sweep, SweepRow};
use perch_report::{Align, Format, Grid, figure, json, percent, write_csv};
use perch_workload::Budget;
use schemars::Schema;

use crate::arguments::{AllowScx, at_least_one, threads};
use crate::meter::{Meter, Unit};
use crate::output::{Failure, emit, emit_as, say};
pub use rank::{RankArguments, ranked_schema};

/// The commands of `perch sweep`.
#[derive(Subcommand)]
pub enum Command {
    /// Check a sweep, and list its simulations: keys and values, one per line
    Plan(PlanArguments),
    /// Simulate what the store does not have
    Run(RunArguments),
    /// Say how many of the simulations the store has
    Status(StatusArguments),
    /// Print the table of all results: scores by axes, with changes from the baseline
    Collect(CollectArguments),
    /// Simulate what the store does not have, and print how the arms stand against the baseline
    Rank(RankArguments),
}

/// The sweep that a command is about.
#[derive(Args)]
pub struct PlanArguments {
    /// The sweep's file (docs/sweeps.md), or composition, league or live
    #[arg(value_name = "SWEEP.toml")]
    sweep: String,
    /// A part alone, for example 3/64: what one task of a Slurm array does
    #[arg(long, value_name = "K/N", default_value_t = Shard::WHOLE)]
    shard: Shard,
    /// Say how many simulations there are, and nothing else
    #[arg(long)]
    count: bool,
    #[command(flatten)]
    scx: AllowScx,
}

/// The arguments of `perch sweep run`.
#[derive(Args)]
pub struct RunArguments {
    /// The sweep's file (docs/sweeps.md), or composition, league or live
    #[arg(value_name = "SWEEP.toml")]
    sweep: String,
    /// The folder that keeps the results; it is created if it does not exist
    #[arg(long, value_name = "FOLDER")]
    store: PathBuf,
    /// A part alone, for example 3/64: what one task of a Slurm array does
    #[arg(long, value_name = "K/N", default_value_t = Shard::WHOLE)]
    shard: Shard,
    /// Threads to simulate on; results do not depend on them [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    jobs: Option<u32>,
    /// Simulate again what the store has in another form than perch wrote it
    #[arg(long)]
    repair: bool,
    /// Memory that the tasks and the scores of one simulation may take; what asks for more is refused
    #[arg(long, default_value_t = Budget::DEFAULT, value_name = "MEMORY")]
    budget: Budget,
    #[command(flatten)]
    scx: AllowScx,
    /// Say nothing on stderr but errors
    #[arg(long, short)]
    quiet: bool,
}

/// The arguments of `perch sweep status`: a sweep, and a store that is there.
#[derive(Args)]
pub struct StatusArguments {
    /// The sweep's file, or its name
    #[arg(value_name = "SWEEP.toml")]
    sweep: String,
    #[command(flatten)]
    scx: AllowScx,
    /// The folder that keeps the results
    #[arg(long, value_name = "FOLDER")]
    store: PathBuf,
}

/// The arguments of `perch sweep collect`.
#[derive(Args)]
pub struct CollectArguments {
    #[command(flatten)]
    of: StatusArguments,
    /// The score to show alone, by its name
    #[arg(long, value_name = "NAME")]
    score: Option<String>,
    /// How to write the table: table, markdown, csv or json
    #[arg(long, default_value = "table", value_name = "FORMAT")]
    format: Format,
}

/// Carries out a command of `perch sweep`.
pub fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Plan(arguments) => plan(&arguments),
        Command::Run(arguments) => run_all(&arguments),
        Command::Status(arguments) => status(&arguments),
        Command::Collect(arguments) => collect(&arguments),
        Command::Rank(arguments) => rank::run(&arguments),
    }
}

fn plan(arguments: &PlanArguments) -> Result<(), Failure> {
    let sweep = Sweep::resolve(&arguments.sweep)?.within(arguments.scx.limits());
    let simulations = sweep.simulations(arguments.shard)?;
    if arguments.count {
        return emit(&format!("{}\n", simulations.len()));
    }
    let mut out = String::new();
    for prepared in &simulations {
        let asked = serde_json::to_string(&prepared.asked).expect("texts and numbers");
        out += &format!("{} {asked}\n", prepared.key);
    }
    emit(&out)
}

impl RunArguments {
    fn resolve(&self) -> Result<Sweep, Failure> {
        let limits = Limits { budget: self.budget, ..self.scx.limits() };
        Ok(Sweep::resolve(&self.sweep)?.within(limits))
    }
}

fn run_all(arguments: &RunArguments) -> Result<(), Failure> {
    let sweep = arguments.resolve()?;
    all_ran(simulate(&sweep, arguments)?)
}

/// Simulates what the store does not have, and returns the messages of the simulations that failed.
fn simulate(sweep: &Sweep, arguments: &RunArguments) -> Result<Vec<String>, Failure> {
    let jobs = threads(arguments.jobs);
    if arguments.repair && arguments.store.exists() {
        let simulations = sweep.simulations(arguments.shard)?;
        let removed = Store::existing(&arguments.store)?.repair(&simulations)?;
        if !arguments.quiet {
            say(format_args!("removed {removed} results that were not as perch wrote them"));
        }
    }
    let meter = Meter::new(&arguments.sweep, Unit::Weighed, arguments.quiet);
    let mut advance = |at: Advance| {
        meter.advance_by_cost(at.done as u64, at.all as u64, at.part);
        Ok::<_, Failure>(())
    };
    let done = sweep.run(&arguments.store, arguments.shard, jobs, &mut advance)?;
    meter.say_simulated(jobs);
    if !arguments.quiet {
        say(format_args!(
            "{} simulations, of which {} were there and {} are new",
            done.all, done.had, done.made
        ));
    }
    Ok(done.failed)
}

/// Makes an error of the messages of simulations that failed.
fn all_ran(failed: Vec<String>) -> Result<(), Failure> {
    match failed.as_slice() {
        [] => Ok(()),
        [first, rest @ ..] => Err(Failure::run(match rest.len() {
            0 => first.clone(),
            more => format!("{first}; and {more} more simulations failed"),
        })),
    }
}

impl StatusArguments {
    fn open(&self) -> Result<(Sweep, Store), Failure> {
        let sweep = Sweep::resolve(&self.sweep)?.within(self.scx.limits());
        Ok((sweep, Store::existing(&self.store)?))
    }
}

fn status(arguments: &StatusArguments) -> Result<(), Failure> {
    let (sweep, store) = arguments.open()?;
    let simulations = sweep.simulations(Shard::WHOLE)?;
    let all = simulations.len();
    let had = all - store.lacks(&simulations)?.len();
    emit(&format!(
        "{all} simulations: {had} are there, {} are missing; {} results of others\n",
        all - had,
        store.keys()?.len() - had
    ))
}

fn collect(arguments: &CollectArguments) -> Result<(), Failure> {
    let (sweep, store) = arguments.of.open()?;
    let (mut rows, missing) = sweep.collect(&store)?;
    if let Some(score) = &arguments.score {
        let mut known: Vec<String> = rows.iter().map(|row| row.score.clone()).collect();
        known.sort();
        known.dedup();
        if !rows.is_empty() && !known.contains(score) {
            let known = known.join(", ");
            return Err(Failure::input(format!(
                "--score {score}: no such score: expected one of {known}"
            )));
        }
        rows.retain(|row| row.score == *score);
    }
    if missing > 0 {
        say(format_args!("{missing} points have no result yet: perch sweep run makes them"));
    }
    let names = sweep.names();
    let text = match arguments.format {
        Format::Json => json(&rows),
        Format::Csv => sheet(&names, &rows),
        Format::Markdown => grid(&names, &rows).markdown(),
        Format::Table => grid(&names, &rows).text(),
    };
    emit_as(arguments.format, &text)
}

/// Returns the schema of the table in JSON.
pub fn collected_schema() -> Schema {
    perch_file::result_schema::<Vec<SweepRow>>("result of perch sweep collect")
}

fn grid(names: &[&str], rows: &[SweepRow]) -> Grid {
    let mut grid = Grid::new(names, &[]);
    grid.columns("", &["score", "unit"], Align::Left);
    grid.columns("", &["runs", "mean", "±95%"], Align::Right);
    grid.columns("from the baseline", &["change", "±95%"], Align::Right);
    grid.column("", "", Align::Left);
    for row in rows {
        let blank = String::new;
        let mut cells: Vec<String> = point(names, row);
        cells.extend([
            row.score.clone(),
            row.unit.clone(),
            row.repetitions.to_string(),
            figure(row.mean),
            row.ci95.map_or_else(blank, figure),
            row.change_pct.map_or_else(blank, percent),
            row.change_ci95_pct.map_or_else(blank, |half| format!("{half:.2}")),
            row.why_not_settled.as_ref().map_or_else(blank, |why| format!("not settled: {why}")),
        ]);
        grid.row(cells);
    }
    grid
}

/// Returns the values of a row's point.
fn point(names: &[&str], row: &SweepRow) -> Vec<String> {
    names.iter().map(|name| plain(&row.point[*name])).collect()
}

/// Returns a value without the quotes of TOML.
fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Returns the table in CSV, with figures in full precision.
fn sheet(names: &[&str], rows: &[SweepRow]) -> String {
    let columns = [
        "score",
        "unit",
        "higher_is_better",
        "repetitions",
        "mean",
        "ci95",
        "settled",
        "why_not_settled",
        "change_pct",
        "change_ci95_pct",
    ];
    let head = names.iter().copied().chain(columns).map(str::to_string);
    let mut records: Vec<Vec<String>> = vec![head.collect()];
    records.extend(rows.iter().map(|row| {
        let cells = [
            row.score.clone(),
            row.unit.clone(),
            row.higher_is_better.to_string(),
            row.repetitions.to_string(),
            row.mean.to_string(),
            number(row.ci95),
            row.settled.to_string(),
            row.why_not_settled.clone().unwrap_or_default(),
            number(row.change_pct),
            number(row.change_ci95_pct),
        ];
        point(names, row).into_iter().chain(cells).collect()
    }));
    write_csv(&records)
}

/// Returns a figure in full precision; nothing where there is none.
fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

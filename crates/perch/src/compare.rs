// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch compare`: any arms on any workload and machine.

#[cfg(feature = "record")]
mod record;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use perch_experiment::{Arm, CompareSpec, Plan};
use perch_file::Fresh;
use perch_machine::Machine;
use perch_policy::{Era, Topology};
use perch_report::{PerfettoTrace, ResultFormat, comparison, paste_comparison};
use perch_sim::{RootDomain, Scenario, Watch};
use perch_workload::{Budget, Workload};

use crate::arguments::{Common, Effort, at_least_one, duration_ns, origin};
use crate::gate;
use crate::meter::{Meter, Unit};
use crate::output::{Failure, emit_as, say};
#[cfg(feature = "record")]
use record::SimulatedRecording;

/// The arguments of `perch compare`.
#[derive(Args)]
#[command(after_long_help = perch_policy::mechanisms_in_words())]
pub struct Arguments {
    /// A machine by name (perch machine list), or a TOML file
    #[arg(short, long, value_name = "MACHINE")]
    machine: String,
    /// A workload with its keys (perch workload list), for example tbench:n=16,where=node0
    #[arg(short, long, value_name = "WORKLOAD")]
    workload: String,
    /// An arm, for example near:cluster=perch; changes are shown from the first. live:SETTINGS is
    /// perch's own scheduler as perch run --set SETTINGS loads it, over the simulated kernel; give it
    /// another name by NAME=live:SETTINGS
    #[arg(long = "arm", value_name = "NAME:MODES", required = true)]
    arms: Vec<String>,
    /// The stock kernel, from 3.4 to 7.2
    #[arg(long, default_value = "7.2", value_name = "VERSION")]
    era: Era,
    /// Ticks per second
    #[arg(long, default_value_t = 250, value_name = "N")]
    hz: u32,
    /// How the kernel's root domain is laid out: stock, or rearranged as patch 2 of the series on
    /// its lines has it
    #[arg(long, default_value = "stock", value_name = "LAYOUT")]
    root_domain: RootDomain,
    /// How far to go on until scores are steady and changes narrow: at most 10 million simulated
    /// events, 100 million, or 2 billion for each arm, all its repetitions together
    #[arg(long, value_enum, default_value_t, conflicts_with_all = ["warmup", "measure"])]
    effort: Effort,
    /// Simulations per arm [default: 5; without --warmup and --measure as many as make changes
    /// narrow, up to 40]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    repetitions: Option<u32>,
    /// Simulated time before anything is counted [default: until scores are steady; as --measure,
    /// where that is given]
    #[arg(long, value_name = "TIME", value_parser = duration_ns)]
    warmup: Option<u64>,
    /// Simulated time that is counted [default: as --warmup]
    #[arg(long, value_name = "TIME", value_parser = duration_ns)]
    measure: Option<u64>,
    /// Also show std, min, percentiles and max over the repetitions
    #[arg(long)]
    statistics: bool,
    /// Also write each arm's first repetition as a Perfetto trace: its first 600 ms, unless --warmup
    /// or --measure say otherwise. With several arms their names go before the file's extension
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Also write each arm's first repetition as a recording, for perch replay and perch advise: as
    /// much of it as of a trace, and to files named likewise
    #[cfg(feature = "record")]
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    gates: gate::Gates,
    #[command(flatten)]
    common: Common,
}

/// Carries out `perch compare`.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let common = &arguments.common;
    let plan = plan(&arguments);
    let machine = Arc::new(perch_machine::resolve(&arguments.machine)?);
    let spec = CompareSpec {
        topology: Topology::new(&machine),
        machine,
        era: arguments.era,
        hz: arguments.hz,
        root_domain: arguments.root_domain,
        workload: arguments.workload,
        arms: arguments
            .arms
            .iter()
            .map(|text| Arm::parse(text, arguments.era))
            .collect::<Result<_, _>>()?,
        plan,
        statistics: arguments.statistics,
        seed: common.seed.unwrap_or(1),
        jobs: common.jobs(),
        budget: common.budget,
    };
    say_notes(&spec.workload, &spec.machine, spec.budget)?;
    let names: Vec<&str> = spec.arms.iter().map(|arm| arm.name.as_str()).collect();
    let others = names.get(1..).unwrap_or_default();
    let begin = spec.plan.repetitions();
    let first = names.first().copied();
    let gates = (arguments.gates).begin(first, others, begin, common.quiet)?;
    let files = [
        &arguments.trace,
        #[cfg(feature = "record")]
        &arguments.record,
    ];
    for file in files.into_iter().flatten() {
        let is_pipe = std::fs::metadata(file).is_ok_and(|found| found.file_type().is_fifo());
        if is_pipe && !others.is_empty() {
            return Err(Failure::input(format!(
                "{} is a pipe, which takes one arm's file: expected a name, to which those of the arms \
                 are added, or one --arm",
                file.display()
            )));
        }
        for arm in &spec.arms {
            writable(&of_arm(&spec, file, arm))?;
        }
    }
    let meter = Meter::new(&spec.workload, Unit::Each, common.quiet);
    let mut advance = |done, total| meter.advance(done as u64, total as u64);
    let result = perch_experiment::compare(&spec, &mut advance)?;
    meter.say_simulated(spec.jobs);
    if let Some(file) = &arguments.trace {
        let begin = |out, scenario: &_| trace(out, &spec, scenario);
        watch(&spec, file, common.quiet, "trace", begin)?;
    }
    #[cfg(feature = "record")]
    if let Some(file) = &arguments.record {
        record(&spec, file, common.quiet)?;
    }
    let text = match common.format {
        ResultFormat::Plain(format) => comparison(&result, format),
        ResultFormat::Paste(paste) => paste_comparison(&result, &origin(), paste),
    };
    emit_as(common.format, &text)?;
    gates.judge(&result.changes())
}

/// Says what the workload's source asks for and perch does not simulate.
pub fn say_notes(workload: &str, machine: &Machine, budget: Budget) -> Result<(), Failure> {
    let built = Workload::parse_within(workload, machine, budget);
    let built = built.map_err(|error| Failure::input(error.to_string()))?;
    built.notes.iter().for_each(say);
    Ok(())
}

/// Writes each arm's first repetition as a recording.
#[cfg(feature = "record")]
pub fn record(spec: &CompareSpec, file: &Path, quiet: bool) -> Result<(), Failure> {
    let command = || vec![spec.workload.clone()];
    let begin = |out, scenario: &_| SimulatedRecording::new(out, scenario, command());
    watch(spec, file, quiet, "recording", begin)
}

/// Returns how long to simulate, and how often.
fn plan(arguments: &Arguments) -> Plan {
    let Arguments { warmup, measure, repetitions, .. } = *arguments;
    match (warmup.or(measure), measure.or(warmup)) {
        (Some(warmup_ns), Some(measure_ns)) => Plan::by_hand(warmup_ns, measure_ns, repetitions),
        _ => Plan::Until { effort: arguments.effort.into(), repetitions },
    }
}

/// Writes the output of a watcher of each arm's first repetition: a trace or a recording.
fn watch<W: Watch>(
    spec: &CompareSpec,
    file: &Path,
    quiet: bool,
    what: &str,
    begin: impl Fn(BufWriter<File>, &Scenario) -> io::Result<W>,
) -> Result<(), Failure> {
    for (index, arm) in spec.arms.iter().enumerate() {
        let path = of_arm(spec, file, arm);
        let fresh = Fresh::create(&path).map_err(|error| cannot(&path, &error))?;
        let out = fresh.handle().map_err(|error| cannot(&path, &error))?;
        perch_experiment::watch(spec, index, |scenario| begin(BufWriter::new(out), scenario))?;
        fresh.keep().map_err(|error| cannot(&path, &error))?;
        if !quiet {
            say(format_args!("the {what} of arm {} is {}", arm.name, path.display()));
        }
    }
    Ok(())
}

/// The name of an arm's file.
fn of_arm(spec: &CompareSpec, file: &Path, arm: &Arm) -> PathBuf {
    // /dev/null takes the files of all arms.
    let replaced = !std::fs::metadata(file).is_ok_and(|found| !found.is_file());
    match spec.arms.len() {
        n if n > 1 && replaced => with_name(file, &arm.name),
        _ => file.to_path_buf(),
    }
}

fn cannot(path: &Path, error: &io::Error) -> Failure {
    Failure::run(format!("cannot write {}: {error}", path.display()))
}

/// Refuses a file that cannot be written, before anything is simulated, and leaves its content as
/// it is.
fn writable(path: &Path) -> Result<(), Failure> {
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        // Opening and closing a pipe here would end it for its reader.
        return Ok(());
    }
    // perch may still refuse the other arguments, and then leaves no empty file behind.
    let begun = Fresh::create(path).map(drop);
    begun.map_err(|error| cannot(path, &error))
}

fn trace<W: Write>(
    out: W,
    spec: &CompareSpec,
    scenario: &Scenario,
) -> io::Result<PerfettoTrace<W>> {
    let kind = spec.workload.split(':').next().unwrap_or_default();
    let tasks = 0..scenario.workload.tasks.len();
    PerfettoTrace::new(
        out,
        tasks.map(|task| format!("{kind}/{task}")).collect(),
        scenario.machine.cpus.len(),
        scenario.topology.nr_llcs(),
    )
}

/// `run.pftrace` and an arm `near` make `run.near.pftrace`.
fn with_name(file: &Path, arm: &str) -> PathBuf {
    let extension = file.extension().map(|e| e.to_string_lossy().into_owned());
    let mut path = file.with_extension("").into_os_string();
    path.push(".");
    path.push(arm);
    if let Some(extension) = extension {
        path.push(".");
        path.push(extension);
    }
    path.into()
}

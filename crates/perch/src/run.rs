// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch run`: the scheduler in this kernel, until Ctrl-C.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use perch_plan::{Configuration, SettingsError, settings};
use perch_scheduler::stats::{About, Report, SOCKET, StatisticsError};
use perch_scheduler::{News, Options};

use crate::exit;
use crate::output::{Failure, emit, say};
use crate::stats::{interval, line, summary};

/// The arguments of `perch run`.
#[derive(Args)]
#[command(after_long_help = format!(
    "{}\n\n{}\n\n{}",
    perch_policy::mechanisms_in_words(), settings::help(), exit::HELP
))]
pub struct Arguments {
    /// Modes of mechanisms and settings, for example cluster=off or balance_ms=8; several,
    /// separated by commas, or one after another [default: perch's own, where the machine has what
    /// a mechanism needs]
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Tasks of the real-time band, by the keys of the file's `[[band]]`, for example
    /// comm=ffmpeg*,priority=50; after those of the file
    #[arg(long, value_name = "RULE")]
    band: Vec<String>,
    /// Schedule only some tasks, by the keys of the file's `[[partial]]`, for example cgroup=/web; all
    /// others stay with the kernel's scheduler. Several rules choose the tasks that fit any of them
    #[arg(long, value_name = "RULE")]
    partial: Vec<String>,
    /// Believe this machine's capacities, caches and clusters instead of what /sys says: a
    /// library name or a TOML file with this machine's CPUs, cores and nodes
    #[arg(long, short, value_name = "MACHINE")]
    machine: Option<String>,
    /// See each last-level cache as N, of whole cores: the setting split_llc
    #[arg(long, value_name = "N")]
    split_llc: Option<u64>,
    /// A TOML file of modes, settings and rules (its keys: perch run --help)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print a line of statistics this often
    #[arg(long, value_name = "TIME", value_parser = interval)]
    interval: Option<Duration>,
    /// Write all that libbpf and the kernel's verifier say to this file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Where to give statistics to perch stats and the tools of sched_ext
    #[arg(long, value_name = "SOCKET", default_value = SOCKET)]
    socket: PathBuf,
    /// Read the configuration, look at the kernel and the machine, say what would be loaded, and load
    /// nothing; ends with the exit code that perch run would have, but allows a perch that is loaded
    #[arg(long)]
    check: bool,
    /// Say nothing but errors, no statistics at the end either
    #[arg(long, short)]
    quiet: bool,
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Failure {
        Failure::input(error.to_string())
    }
}

impl From<StatisticsError> for Failure {
    fn from(error: StatisticsError) -> Failure {
        Failure::run(error.to_string())
    }
}

/// Carries out `perch run`.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let split = arguments.split_llc.map(|parts| format!("split_llc={parts}"));
    let configuration = Configuration {
        file: arguments.config,
        set: arguments.set.into_iter().chain(split).collect(),
        bands: arguments.band,
        partial: arguments.partial,
    };
    // What is wrong with them is said first, whatever else is.
    configuration.read()?;
    let machine = arguments.machine.as_deref().map(perch_machine::resolve);
    let options = Options {
        configuration,
        machine: machine.transpose()?,
        interval: arguments.interval,
        socket: arguments.socket,
        log: arguments.log,
    };
    let quiet = arguments.quiet;
    if arguments.check {
        let (about, notes) = perch_scheduler::check(&options)?;
        if !quiet {
            notes.into_iter().for_each(say);
            say_rules(&about);
            say(format!("would schedule {}", in_words(&about)));
        }
        return Ok(());
    }
    let mut last: Option<Report> = None;
    let mut tell = |news: News| match news {
        News::Refused(words) => say(words),
        News::Note(note) if !quiet => say(note),
        News::Attached(about) if !quiet => {
            say_rules(&about);
            say(format!("scheduling {}; Ctrl-C unloads", in_words(&about)));
        }
        News::Interval(report) => {
            let change = last.as_ref().map(|last| report.since(last));
            // The reader of stdout may be gone; the scheduler goes on nevertheless.
            let _ = emit(&line(change.as_ref().unwrap_or(&report)));
            last = Some(*report);
        }
        News::Note(_) | News::Attached(_) => {}
    };
    match perch_scheduler::run(&options, &mut tell) {
        Ok(report) if quiet => drop(report),
        Ok(report) => emit(&summary(&report))?,
        Err((error, report)) => {
            if let (false, Some(report)) = (quiet, report) {
                emit(&summary(&report))?;
            }
            return Err(error.into());
        }
    }
    Ok(())
}

fn in_words(about: &About) -> String {
    format!("{} CPUs of {} on Linux {}: {}", about.cpus, about.machine, about.kernel, about.modes)
}

fn say_rules(about: &About) {
    if !about.partial.is_empty() {
        say(format!("only tasks of: {}", about.partial));
    }
    if !about.band.is_empty() {
        say(format!("real-time band: {}", about.band));
    }
}

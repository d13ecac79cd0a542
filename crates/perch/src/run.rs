// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch run`: the scheduler in this kernel, until Ctrl-C.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use perch_scheduler::stats::{Report, SOCKET, StatisticsError};
use perch_scheduler::{Band, News, Options, SchedulerError, Settings};

use crate::output::{Failure, emit};
use crate::stats::{interval, line, summary};

/// The keys of `--config`, for `perch run --help`; the settings check them.
const KEYS: &str = "\
Keys of the TOML file, all optional, with their defaults:
  modes = \"cluster=perch\"   as --set takes them; --set has the last word
  slice_us = 6000           a task that is alone runs so long until it is looked at again
  slice_min_us = 1000       the slice, however many tasks wait
  lag_us = 10000            the most that a task is owed or owes
  preempt_us = 4000         a wakee so far behind the running task interrupts it
  balance_ms = 4            how often queues are compared, 1 to 1000
  steal_remote_us = 500     so long a waiting task is left to the CPUs of its node
  processes = 1024          so many the cache mechanism follows, 1 to 65536
  groups = 4096             so many cgroups have their cpu.weight followed, 0 to 65536
  band_percent = 95         the real-time band may have so much of a CPU that others want, too
  band_period_ms = 100      of each such period, 10 to 1000
  detail = false            also count wake-ups that had an idle CPU near

The real-time band: tasks that go before all others. The first [[band]] that fits a task counts:
  [[band]]
  comm = \"ffmpeg*\"         by the command's name, as /proc/PID/comm has it
  cgroup = \"/rt\"           by the cgroup, with those below it
  nice = -20                by the niceness; of these three at least one, and all that are there
  priority = 50             1 to 99, the highest goes first
  policy = \"rr\"            those of one priority take turns [default: fifo, they do not]
  slice_ms = 100            of this length";

/// What to load and how.
#[derive(Args)]
#[command(after_long_help = KEYS)]
pub struct Arguments {
    /// Modes of mechanisms, for example cluster=off [default: perch's own, where the machine has
    /// what a mechanism needs]
    #[arg(long = "set", value_name = "MODES")]
    set: Vec<String>,
    /// Tasks of the real-time band, by the keys of the file's `[[band]]`, for example
    /// comm=ffmpeg*,priority=50; after those of the file
    #[arg(long, value_name = "RULE")]
    band: Vec<String>,
    /// Believe this machine's capacities, caches and clusters instead of what /sys says: a
    /// library name or a TOML file with this machine's CPUs, cores and nodes
    #[arg(long, short, value_name = "MACHINE")]
    machine: Option<String>,
    /// A TOML file of modes and times (its keys: perch run --help)
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
    /// Say nothing but errors, no statistics at the end either
    #[arg(long, short)]
    quiet: bool,
}

impl From<StatisticsError> for Failure {
    fn from(error: StatisticsError) -> Failure {
        Failure::run(error.to_string())
    }
}

impl From<SchedulerError> for Failure {
    fn from(error: SchedulerError) -> Failure {
        match error.is_input() {
            true => Failure::input(error.to_string()),
            false => Failure::run(error.to_string()),
        }
    }
}

/// Does it.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let mut settings = match &arguments.config {
        Some(file) => Settings::from_file(file)?,
        None => Settings::default(),
    };
    for modes in &arguments.set {
        settings.set(modes)?;
    }
    for rule in &arguments.band {
        settings.add_band(rule.parse::<Band>()?)?;
    }
    let machine = arguments.machine.as_deref().map(perch_machine::resolve);
    let options = Options {
        settings,
        machine: machine.transpose()?,
        interval: arguments.interval,
        socket: arguments.socket,
        log: arguments.log,
    };
    let mut last: Option<Report> = None;
    let quiet = arguments.quiet;
    let mut tell = |news: News| match news {
        News::Note(note) if !quiet => eprintln!("perch: {note}"),
        News::Attached(about) if !quiet => {
            if !about.band.is_empty() {
                eprintln!("perch: real-time band: {}", about.band);
            }
            eprintln!(
                "perch: scheduling {} CPUs of {} on Linux {}: {}; Ctrl-C unloads",
                about.cpus, about.machine, about.kernel, about.modes
            );
        }
        News::Interval(report) => {
            let change = last.as_ref().map(|last| report.since(last));
            // Nobody may be reading any more; the scheduler goes on.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_has_the_defaults() {
        let (plain, band) = KEYS.split_once("\n\n").expect("the band comes second");
        let keys = plain.lines().skip(1).map(|line| {
            let (pair, _) = line.trim().split_once("   ").unwrap_or((line.trim(), ""));
            format!("{pair}\n")
        });
        let file: String = keys.filter(|line| !line.starts_with("modes")).collect();
        let settings = Settings::from_toml(&file, "help").expect("the help is a file");
        // Where nothing is said of groups, they are as many, unless that takes too much memory.
        let defaults = Settings::from_toml("groups = 4096", "defaults").expect("a file");
        assert_eq!(settings, defaults, "{file}");
        assert_eq!(file.lines().count(), 11);
        let keys = band.lines().skip(1).map(|line| {
            let (key, _) = line.trim().split_once("   ").unwrap_or((line.trim(), ""));
            format!("{key}\n")
        });
        let settings = Settings::from_toml(&keys.collect::<String>(), "help").expect("so is this");
        assert_eq!(
            settings.bands()[0].to_string(),
            "comm=ffmpeg*,cgroup=/rt,nice=-20,priority=50,slice_ms=100"
        );
    }
}

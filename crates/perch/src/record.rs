// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch record` writes every wake-up of the running kernel into a file.

use std::fs::File;
use std::io::BufWriter;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use clap::Args;
use perch_machine::Host;
use perch_policy::{Era, Topology};
use perch_record::format::{Decisions, Footer, Header, Writer};
use perch_record::{RecordError, Recorder, version_of};
use perch_scheduler::{Kernel, RefusedError, Signals};

use crate::arguments::{BadValue, with_unit};
use crate::exit;
use crate::output::{Failure, say};
use crate::trial::unblock_signals;

/// The arguments of `perch record`.
#[derive(Args)]
#[command(after_help = exit::HELP)]
pub struct Arguments {
    /// The file to write; an existing file is replaced
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Memory for wake-ups that are not in the file yet: 64k to 1g, rounded up to a power of two.
    /// Where it is full wake-ups are lost, and counted
    #[arg(long, value_name = "SIZE", default_value = "16m", value_parser = ring)]
    buffer: u32,
    /// What to record: wake-ups, or all decisions, which are those about queues too: picks, wake-up
    /// preemption, and where tasks stand when they enter and leave a queue (kernels with EEVDF)
    #[arg(long, value_name = "WHICH", default_value = "wake-ups")]
    decisions: Which,
    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,
    /// Record while this runs; without it until Ctrl-C
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The decisions to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Which {
    WakeUps,
    All,
}

fn ring(text: &str) -> Result<u32, BadValue> {
    let units = [("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30)];
    let bytes = with_unit(text, &units, "64k, 16m or 1g")?;
    match bytes {
        Some(bytes @ 0x1_0000..=0x4000_0000) => Ok((bytes as u32).next_power_of_two()),
        _ => Err("expected 64k to 1g".into()),
    }
}

/// The era whose rules a kernel follows, by its release; `None` for a kernel that is too old to
/// record.
pub fn era_of(release: &str) -> Option<Era> {
    let (major, minor) = version_of(release)?;
    Some(Era::nearest(major, minor)).filter(|&era| era >= Era::V5_5)
}

/// Carries out `perch record`.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    if let Some(program) = arguments.command.first() {
        is_there(program)?;
    }
    let kernel = Kernel::new(Path::new("/"));
    kernel.check_record()?;
    let release = kernel.version();
    let Some(era) = era_of(&release) else {
        return Err(Failure {
            code: exit::UNABLE,
            message: format!("Linux {release}: recording takes 5.5 or newer"),
        });
    };
    // A recording's CPUs have the kernel's numbers, and its machine must have the same. It tells how
    // the kernel chose, so it has no capacities but the kernel's.
    let host = Host::detect(Path::new("/"))?.with_kernel_capacities();
    let machine = host.with_kernel_numbers()?;
    let topology = Topology::new(&machine);
    // The machine's CPUs are online, so at least these are possible.
    let possible = kernel.possible().unwrap_or(topology.nr_cpus());
    RefusedError::listen();
    let mut recorder = Recorder::load(&topology, possible, arguments.buffer, &release)?;
    if arguments.decisions == Which::All {
        recorder.add_decisions(arguments.buffer)?;
    }
    let header = Header {
        perch: env!("CARGO_PKG_VERSION").to_string(),
        machine: machine.to_toml(),
        kernel: release,
        era: era.to_string(),
        hz: recorder.hz(),
        command: arguments.command.clone(),
        ..Header::default()
    };
    let path = arguments.output.display().to_string();
    let wrong = |error: std::io::Error| Failure::run(format!("{path}: {error}"));
    // A recording grows in its place. Hours may stand in it when the recorder is killed or the disk is
    // full, and a reader takes one that was cut off.
    // It has command lines and the work of every user, so it is its owner's alone.
    let mut options = File::options();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let file = BufWriter::new(options.open(&arguments.output).map_err(wrong)?);
    let (cpus, shared) = (topology.nr_cpus(), topology.nr_shared());
    let writer = Writer::new(file, header, cpus, shared).map_err(wrong)?;
    let signals = Signals::block();
    let began = Instant::now();
    recorder.attach()?;
    let mut child = match arguments.command.split_first() {
        Some((program, rest)) => Some(spawn(program, rest)?),
        None => None,
    };
    let mut ended = None;
    let done = || {
        let stopped = signals.wait(Duration::ZERO).is_some();
        if let Some(child) = &mut child {
            ended = child.try_wait().unwrap_or_default();
            if stopped && ended.is_none() {
                // The terminal sends Ctrl-C's signal to the command as well; other signals came to
                // perch alone.
                let _ = child.kill();
                ended = child.wait().ok();
            }
        }
        stopped || ended.is_some()
    };
    let footer = match recorder.run(&topology, writer, done) {
        Ok(footer) => footer,
        Err(error) => {
            let mut words = match error {
                RecordError::Write(error) => {
                    format!("{path}: {error}; the wake-ups that were written before can be read")
                }
                other => other.to_string(),
            };
            if let Some(child) = child.as_mut().filter(|_| ended.is_none()) {
                // SAFETY: this process has not waited for the child, so the id is still the
                // child's.
                unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
                let _ = child.wait();
                words += "; the command was ended (SIGTERM)";
            }
            return Err(Failure::run(words));
        }
    };
    if !arguments.quiet {
        say(summary(&footer, &path, began.elapsed()));
    }
    match ended {
        Some(status) if !status.success() => Err(Failure::run(match status.signal() {
            Some(signal) => format!("the command was killed by signal {signal}"),
            None => format!("the command ended with {}", status.code().unwrap_or(1)),
        })),
        _ => Ok(()),
    }
}

/// Refuses a program that cannot be found, before the kernel loads anything for it.
fn is_there(program: &str) -> Result<(), Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = if program.contains('/') {
        Path::new(program).exists()
    } else {
        std::env::split_paths(&path).any(|folder| folder.join(program).exists())
    };
    if found {
        Ok(())
    } else {
        Err(Failure::input(format!(
            "cannot run {program}: no such program here (perch lab run --with {program} brings it into a guest)"
        )))
    }
}

/// Starts the command. The command does not inherit perch's signal mask, which blocks the signals
/// that end it.
fn spawn(program: &str, rest: &[String]) -> Result<Child, Failure> {
    let mut command = std::process::Command::new(program);
    unblock_signals(command.args(rest));
    command.spawn().map_err(|error| Failure::input(format!("cannot run {program}: {error}")))
}

fn summary(footer: &Footer, path: &str, took: Duration) -> String {
    let Footer { wake_ups, dropped, cost_ns, undecided, decisions } = footer;
    let each = match cost_ns {
        0 => "too few to time".to_string(),
        _ => each(*cost_ns, *wake_ups + *dropped),
    };
    let more = [undecided.words(), decisions.as_ref().map(queues)];
    let more: String = (more.iter().flatten()).map(|words| format!("\nperch: {words}")).collect();
    let (took, lost) = (took.as_secs_f64(), lost(*dropped));
    format!("{wake_ups} wake-ups in {took:.1} s, {lost}; {each}; {path}{more}")
}

fn lost(dropped: u64) -> String {
    match dropped {
        0 => "none lost".to_string(),
        _ => format!("{dropped} lost (a larger --buffer loses fewer)"),
    }
}

fn each(cost_ns: u64, count: u64) -> String {
    format!("recording took {:.1} us each", cost_ns as f64 / 1000.0 / count.max(1) as f64)
}

/// Returns how many decisions about queues were recorded, in words.
fn queues(decisions: &Decisions) -> String {
    let Decisions { recorded, dropped, too_long, cost_ns } = decisions;
    let long = match too_long {
        0 => String::new(),
        _ => format!("; {too_long} more were about queues of more than 64 tasks"),
    };
    let (lost, each) = (lost(*dropped), each(*cost_ns, recorded + dropped));
    format!("{recorded} decisions about queues, {lost}; {each}{long}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_have_eras() {
        assert_eq!(era_of("7.2.12+deb14-cloud-amd64"), Some(Era::V7_2));
        assert_eq!(era_of("8.1.0"), Some(Era::V7_2));
        assert_eq!(era_of("6.18.15"), Some("6.18".parse().unwrap()));
        assert_eq!(era_of("6.12.117+deb13"), Some("6.12".parse().unwrap()));
        assert_eq!(era_of("6.5.0-rc1"), Some(Era::V6_5));
        assert_eq!(era_of("4.19.0"), None);
        assert_eq!(era_of("of unknown version"), None);
    }

    #[test]
    fn buffers_are_powers_of_two() {
        assert_eq!(ring("16m"), Ok(16 << 20));
        assert_eq!(ring("100k"), Ok(128 << 10));
        assert_eq!(ring("2g"), Err("expected 64k to 1g".into()));
        assert!(ring("16").unwrap_err().to_string().contains("unit"));
    }
}

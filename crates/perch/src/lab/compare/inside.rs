// SPDX-License-Identifier: GPL-2.0-or-later
//! The part of an arm that runs in the guest: its changes are made, its scheduler is loaded, the
//! command runs, the scheduler is unloaded. The host asks for all of it with one command, so that
//! the host's timing has no influence.
//!
//! The command of every arm begins at the same time of the guest. A kernel is busy with itself for
//! seconds after its boot, and a stock arm's command would run in those seconds while another
//! arm's scheduler is still being loaded: with 4 CPUs, hackbench took twice as long there.

use std::fmt::Display;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use clap::Args;
use perch_lab::agent::{FAILED, Scheduled};
use rustix::time::{ClockId, clock_gettime};

use super::arm::Arm;
use super::change::Write;
use crate::agent;
use crate::output::Failure;

/// The agent's command that runs another one as an arm, in a guest.
pub const NAME: &str = "arm";

/// The file in a guest that says how late the command began, in seconds, where it did not begin in
/// time.
pub const LATE: &str = "/run/perch-arm.late";

/// The command's arguments.
#[derive(Args)]
pub struct ArmArguments {
    /// The time from the start of this program to that of the command, in nanoseconds
    #[arg(long, default_value_t = 0)]
    settle: u64,
    /// Do nothing but wait for this time of the guest, in nanoseconds, and begin the command
    #[arg(long)]
    at: Option<u64>,
    /// FILE=VALUE
    #[arg(long)]
    write: Vec<String>,
    /// A word of the scheduler's program and arguments
    #[arg(long, allow_hyphen_values = true)]
    scheduler: Vec<String>,
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<String>,
}

/// The words that run `command` as an arm in its guest, `settle` after they themselves begin.
pub fn words(arm: &Arm, settle: Duration, command: &[String]) -> Vec<String> {
    let mut words = agent::in_guest(NAME);
    words.push(format!("--settle={}", settle.as_nanos()));
    for write in &arm.kernel.writes {
        words.push(format!("--write={}", write.argument()));
    }
    for word in arm.loader().into_iter().flatten() {
        words.push(format!("--scheduler={word}"));
    }
    words.push("--".to_string());
    // The scores of some programs are on standard error, and have to stay in order with the labels
    // on standard output. The words of the scheduler's program must not come between them.
    words.extend(["sh", "-c", "exec \"$@\" 2>&1", "sh"].map(str::to_string));
    words.extend(command.iter().cloned());
    words
}

/// Runs a command as an arm, in a guest.
pub fn run(arguments: ArmArguments) -> Result<(), Failure> {
    if let Some(at) = arguments.at {
        return begin(at, &arguments.command);
    }
    let at = now() + arguments.settle;
    if let Err(failure) = change(&arguments.write) {
        return fail(&failure.message);
    }
    if arguments.scheduler.is_empty() {
        return begin(at, &arguments.command);
    }
    let mut command = agent::in_guest(NAME);
    command.extend(["--at", &at.to_string(), "--"].map(str::to_string));
    command.extend(arguments.command);
    std::process::exit(Scheduled::new(arguments.scheduler, command).run().into())
}

/// The guest's clock, in nanoseconds from its boot.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Becomes the command at a time of the guest.
fn begin(at: u64, command: &[String]) -> Result<(), Failure> {
    let now = now();
    std::thread::sleep(Duration::from_nanos(at.saturating_sub(now)));
    if now > at {
        let late = Duration::from_nanos(now - at).as_secs_f64();
        // The host warns by this file; without it the measurement is the same.
        let _ = std::fs::write(LATE, format!("{late:.1}"));
    }
    let error = Command::new(&command[0]).args(&command[1..]).exec();
    fail(&format!("{}: {error}", command[0]))
}

/// Makes the arm's changes. All arms mount debugfs, so that an arm without changes differs in
/// nothing else from one with them.
fn change(writes: &[String]) -> Result<(), Failure> {
    let mount = ["mount", "-t", "debugfs", "none", "/sys/kernel/debug"];
    let mounted = Command::new("/bin/busybox").args(mount).output();
    let unmounted = |why: &dyn Display| Failure::run(format!("cannot mount debugfs: {why}"));
    let mounted = mounted.map_err(|error| unmounted(&error))?;
    let is_there = mounted.status.success();
    for write in writes {
        let write = Write::parse(write).map_err(|why| Failure::run(why.to_string()))?;
        if write.file.starts_with("/sys/kernel/debug") && !is_there {
            let why = String::from_utf8_lossy(&mounted.stderr);
            return Err(unmounted(&why.trim()));
        }
        write.make()?;
    }
    Ok(())
}

/// Puts the reason of a failure where the host looks for it.
fn fail(words: &str) -> Result<(), Failure> {
    match std::fs::write(Scheduled::failure(), words) {
        Ok(()) => std::process::exit(FAILED.into()),
        Err(_) => Err(Failure::run(words)),
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The beginning and the end of a command that the plugin of its guest, or a BPF program, watches.
//! Where time is modelled, the guest settles first, modelled time begins, and the seed says how long
//! afterwards the command starts. After the command nothing is followed any more: reading the counts
//! would take minutes.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use perch_lab::coherence::{Mark, mark};

use super::waits::Watching;
use crate::output::Failure;

/// The agent's command that runs another one and watches it.
pub const WATCHED: &str = "watched";

/// A guest has settled when its CPUs have done nearly nothing for so long; the kernel checks
/// certificates in its first seconds.
const QUIET: Duration = Duration::from_millis(1000);
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// A guest in which something always runs never settles, and its command begins after so long.
const PATIENCE: Duration = Duration::from_secs(10);
/// A CPU's worth of work in the time between two looks that is nearly nothing, in jiffies of
/// `/proc/stat` (10 ms).
const NOTHING: u64 = 1;

/// The range from which the seed draws the start, longer than any CPU's tick or balancing interval
/// of small domains, so that repetitions meet these in other phases.
const STARTS_WITHIN: Duration = Duration::from_millis(20);

/// The command, and how it begins.
#[derive(Args)]
pub struct WatchedArguments {
    /// Modelled time begins, and this is the seed of the command's start
    #[arg(long)]
    seed: Option<u64>,
    /// Count how the command's tasks wait, and write it to this file, or to stdout
    #[arg(long, num_args = 0..=1, require_equals = true)]
    waits: Option<Option<PathBuf>>,
    /// Count the lines that move while the command runs
    #[arg(long)]
    marks: bool,
    /// The command
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<String>,
}

/// The jiffies in which CPUs did something since the boot.
fn busy() -> Result<u64, Failure> {
    let unread = |error: &dyn std::fmt::Display| Failure::run(format!("/proc/stat: {error}"));
    let stat = std::fs::read_to_string("/proc/stat").map_err(|error| unread(&error))?;
    let mut fields = stat.lines().next().unwrap_or_default().split_whitespace();
    fields.next();
    let fields: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq
    match fields[..] {
        [user, nice, system, _, _, irq, softirq, ..] => Ok(user + nice + system + irq + softirq),
        _ => Err(unread(&"its first line is not that of all CPUs")),
    }
}

/// Waits until the guest is idle but for this process.
fn settle() -> Result<(), Failure> {
    let began = Instant::now();
    let (mut before, mut quiet_since) = (busy()?, Instant::now());
    while quiet_since.elapsed() < QUIET && began.elapsed() < PATIENCE {
        std::thread::sleep(LOOK_EVERY);
        let now = busy()?;
        if now - before > NOTHING {
            quiet_since = Instant::now();
        }
        before = now;
    }
    Ok(())
}

/// The time from the beginning of modelled time to the command's start.
fn start_after(seed: u64) -> Duration {
    // The finisher of splitmix64, which spreads neighbouring seeds over the range.
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    Duration::from_nanos((z ^ (z >> 31)) % STARTS_WITHIN.as_nanos() as u64)
}

/// Runs the command, and ends as it does.
pub fn run(arguments: &WatchedArguments) -> Result<(), Failure> {
    let (program, rest) = arguments.command.split_first().expect("clap asks for one");
    // Loading takes long, and modelled time would make it longer.
    let watching = arguments.waits.as_ref().map(|_| Watching::begin());
    let watching = watching.transpose()?;
    if let Some(seed) = arguments.seed {
        settle()?;
        mark(Mark::Watch);
        std::thread::sleep(start_after(seed));
    }
    let marked = |of| arguments.marks && mark(of);
    marked(Mark::Start(0));
    let status = std::process::Command::new(program).args(rest).status();
    marked(Mark::Stop(0));
    mark(Mark::Leave);
    if let Some((watching, to)) = watching.zip(arguments.waits.as_ref()) {
        watching.end(to.as_deref())?;
    }
    let status = status.map_err(|error| Failure::run(format!("{program}: {error}")))?;
    let code = status.code();
    // A shell's number for a command that a signal ended.
    std::process::exit(code.unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_start_at_other_times() {
        let mut starts: Vec<Duration> = (0..100).map(start_after).collect();
        assert!(starts.iter().all(|start| *start < STARTS_WITHIN));
        starts.sort_unstable();
        starts.dedup();
        assert_eq!(starts.len(), 100);
        assert!(starts[99] - starts[0] > STARTS_WITHIN / 2);
    }

    #[test]
    fn a_running_machine_has_been_busy() {
        assert!(busy().unwrap() > 0);
    }
}

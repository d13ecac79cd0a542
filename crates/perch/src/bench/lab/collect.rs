// SPDX-License-Identifier: GPL-2.0-or-later
//! The half of `perch bench --lab` that runs in the guest: it loads a scheduler, runs workloads
//! under it, and measures the BPF programs that the scheduler brought.

use std::process::{Command, Stdio, exit};
use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use perch_lab::agent::Scheduled;
use perch_scheduler::cost::{Costs, Meter};
use serde::{Deserialize, Serialize};

use crate::agent;
use crate::output::{Failure, emit};

/// The agent's command.
pub const NAME: &str = "bench";

/// The number of times that each workload is measured, one after the other.
const TURNS: usize = 3;

/// The time by which each run's start is shifted against that of the run before. It is not a
/// multiple of a tick, so that a ping-pong that depends on the tick's phase shows each of its
/// placements.
const SHIFT: Duration = Duration::from_micros(1_300);

/// The workloads: name, command, and the shorter command that runs before it.
const WORKLOADS: [(&str, &[&str], &[&str]); 2] = [
    (
        "pipe",
        &["perf", "bench", "sched", "pipe", "-l", "1500"],
        &["perf", "bench", "sched", "pipe", "-l", "200"],
    ),
    (
        "hackbench",
        &["hackbench", "-g", "2", "-p", "-l", "100"],
        &["hackbench", "-g", "2", "-p", "-l", "5"],
    ),
];

/// The arguments of that command.
#[derive(Args)]
pub struct GuestArguments {
    /// Run the workloads' tasks as threads of one process
    #[arg(long)]
    threads: bool,
    /// The scheduler's program and arguments; without them, one is loaded already
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    scheduler: Vec<String>,
}

/// One workload, measured once in each way.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Found {
    /// Its name.
    pub workload: String,
    /// The number of the run among equal ones.
    pub turn: usize,
    /// The costs measured run by run, which are the figures.
    pub costs: Costs,
    /// The costs as the kernel adds them up, against which the figures are checked.
    pub means: Costs,
}

/// Loads the scheduler and runs this command again under it, or measures the one that is loaded.
pub fn run(arguments: GuestArguments) -> Result<(), Failure> {
    if arguments.scheduler.is_empty() {
        let found = measure(arguments.threads)?;
        let text = serde_json::to_string(&found).expect("the figures have only text keys");
        return emit(&text);
    }
    let mut again = agent::in_guest(NAME);
    again.extend(arguments.threads.then(|| "--threads".to_string()));
    exit(Scheduled::new(arguments.scheduler, again).run().into())
}

fn measure(threads: bool) -> Result<Vec<Found>, Failure> {
    let mut meter = Meter::new()?;
    let mut all = Vec::new();
    // Both programs have the same option for threads.
    let threads: &[&str] = if threads { &["-T"] } else { &[] };
    for (name, command, shorter) in WORKLOADS {
        let mut means = Vec::new();
        let command = &[command, threads].concat();
        perform(&[shorter, threads].concat())?;
        for turn in 0..TURNS {
            means.push(meter.by_kernel(|| shifted(turn, command))?);
        }
        let costs = meter.by_run(TURNS, |turn| shifted(turn, command))?;
        let pairs = costs.into_iter().zip(means).enumerate();
        all.extend(pairs.map(|(turn, (costs, means))| Found {
            workload: name.to_string(),
            turn,
            costs,
            means,
        }));
    }
    Ok(all)
}

fn shifted(turn: usize, command: &[&str]) -> Result<(), Failure> {
    sleep(SHIFT * turn as u32);
    perform(command)
}

/// Runs a workload to its end.
fn perform(command: &[&str]) -> Result<(), Failure> {
    let failed = |why: String| Failure::run(format!("{}: {why}", command.join(" ")));
    let output = Command::new(command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr).trim().to_string();
    Err(failed(format!("{}: {words}", output.status)))
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The half of `./x bench --lab` that runs in the guest: it loads a scheduler, runs workloads
//! under it, and measures the BPF programs that the scheduler brought.

use std::process::{Command, Stdio, exit};
use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use perch_lab::agent::Scheduled;
use perch_scheduler::cost::{Costs, Meter};
use serde::Serialize;

use crate::agent;
use crate::output::{Failure, emit};

/// The agent's command.
pub const NAME: &str = "cost";

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
pub struct Arguments {
    /// The scheduler's program and arguments; without them, one is loaded already
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    scheduler: Vec<String>,
}

/// One workload, measured once.
#[derive(Serialize)]
struct Found {
    workload: &'static str,
    costs: Costs,
}

/// Loads the scheduler and runs this command again under it, or measures the one that is loaded.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    if !arguments.scheduler.is_empty() {
        let again = agent::in_guest(NAME);
        exit(Scheduled::new(arguments.scheduler, again).run().into())
    }
    let mut meter = Meter::new()?;
    let mut all = Vec::new();
    for (workload, command, shorter) in WORKLOADS {
        perform(shorter)?;
        let costs = meter.by_run(TURNS, |turn| {
            sleep(SHIFT * turn as u32);
            perform(command)
        })?;
        all.extend(costs.into_iter().map(|costs| Found { workload, costs }));
    }
    emit(&serde_json::to_string(&all).expect("the figures have only text keys"))
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

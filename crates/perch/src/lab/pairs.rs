// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch lab pairs`: pairs of processes, each of which sends a byte there and back, all at the same
//! time and on CPUs that the kernel chooses.
//!
//! It stands for netperf's TCP_RR and UDP_RR in a guest: the pairs of the cluster scan's tables, for a
//! time that a guest in modelled time can afford.

use std::process::{Child, Command, Stdio};

use clap::Args;
use rustix::time::{ClockId, clock_gettime};

use super::ping::{By, End, failed, start};
use crate::agent;
use crate::arguments::duration_ns;
use crate::output::{Failure, emit};

/// The agent's command that is one pair.
pub const PAIR: &str = "pair";

/// The time that a pair's start takes at most on a guest's CPUs in modelled time, in nanoseconds; all
/// pairs begin before the warm-up does.
const START_NS: u64 = 3_000_000;

/// The load.
#[derive(Args)]
pub struct Arguments {
    /// How the byte goes
    #[arg(long, value_enum, default_value = "tcp")]
    by: By,
    /// Pairs at the same time
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    pairs: u32,
    /// Time before anything is measured, after all pairs have started
    #[arg(long, default_value = "20ms", value_name = "TIME", value_parser = duration_ns)]
    warmup: u64,
    /// Time that is measured
    #[arg(long, default_value = "50ms", value_name = "TIME", value_parser = duration_ns)]
    measure: u64,
}

/// One pair's.
#[derive(Args)]
pub struct PairArguments {
    #[arg(long, value_enum)]
    by: By,
    /// The time at which measuring begins and ends, by CLOCK_MONOTONIC, in nanoseconds.
    #[arg(long)]
    from: u64,
    #[arg(long)]
    to: u64,
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The rounds that a pair did, as it printed them.
fn rounds(pair: Child) -> Result<u64, Failure> {
    let output = pair.wait_with_output().map_err(failed("wait for a pair"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.trim().parse() {
        Ok(rounds) if output.status.success() => Ok(rounds),
        // The pair has said why.
        _ => Err(Failure::run(format!("a pair ended with {}", output.status))),
    }
}

/// Runs the pairs and prints what all of them achieved.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let this = std::env::current_exe().map_err(failed("find this program"))?;
    let pairs = u64::from(arguments.pairs);
    let from = now_ns() + pairs * START_NS + arguments.warmup;
    let to = from + arguments.measure;
    let start = |_| {
        let mut command = Command::new(&this);
        command.args([agent::NAME, PAIR, "--by", arguments.by.name()]);
        command.args(["--from", &from.to_string(), "--to", &to.to_string()]);
        let command = command.stdout(Stdio::piped());
        command.spawn().map_err(failed("start a pair"))
    };
    let started: Vec<Child> = (0..pairs).map(start).collect::<Result<_, _>>()?;
    let all = started.into_iter().map(rounds).sum::<Result<u64, _>>()?;
    emit(&format!(
        "{}, {pairs} pairs: {:.1} rounds a second\n",
        arguments.by.name(),
        all as f64 * 1e9 / arguments.measure as f64
    ))
}

/// Plays until the time is over. Returns the rounds that ended in the time that is measured.
fn play(end: &mut dyn End, arguments: &PairArguments) -> Result<u64, Failure> {
    let late = now_ns().saturating_sub(arguments.from);
    if late > 0 {
        return Err(Failure::run(format!(
            "a pair was ready {:.1} ms after measuring began, on CPUs that were busy: give it a \
             longer --warmup",
            late as f64 / 1e6
        )));
    }
    let mut rounds = 0u64;
    loop {
        let played = end.put().and_then(|()| end.get());
        played.map_err(failed("send a byte there and back"))?;
        match now_ns() {
            now if now >= arguments.to => return Ok(rounds),
            now => rounds += u64::from(now >= arguments.from),
        }
    }
}

/// Runs one pair, and prints the rounds that ended in the time that is measured.
pub fn run_pair(arguments: &PairArguments) -> Result<(), Failure> {
    let (mut child, mut end) = start(arguments.by, u64::MAX, || Ok(()))?;
    let rounds = play(&mut *end, arguments);
    // It waits for the next byte, and would complain.
    let _ = child.kill();
    let _ = child.wait();
    emit(&format!("{}\n", rounds?))
}

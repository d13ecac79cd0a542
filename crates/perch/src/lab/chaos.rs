// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch lab chaos`: rounds of storms against perch, each in a deterministic guest of its own.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use perch_chaos::{Plan, Report, Storm};
use perch_lab::guest::{self, Clock, Guest, Setup, Status};
use perch_lab::kernel::Kernel;
use perch_lab::qemu::Qemu;
use perch_lab::{Cpus, Progress, Store, Topology};

use super::options::{GuestKernel, Limit, limit, no_sched_ext, time};
use super::spinner::Spinner;
use crate::agent;
use crate::output::{Failure, emit};

/// The agent's command that carries out a round.
pub const CHAOS: &str = "chaos";

/// The guests, and the rounds in them.
#[derive(Args)]
pub struct Arguments {
    /// The machine that the guests show, by name or TOML file
    #[arg(long, short, value_name = "MACHINE", default_value = "kunpeng920")]
    machine: String,
    #[command(flatten)]
    kernel: GuestKernel,
    /// CPUs of the machine to keep, a number or `all`
    #[arg(long, value_name = "N", default_value_t = Limit(Cpus::AtMost(4)), value_parser = limit)]
    cpus: Limit,
    /// Minutes of storms, in the guests' time; at least one round
    #[arg(long, value_name = "N", default_value_t = 5)]
    minutes: u64,
    /// Rounds, instead of --minutes
    #[arg(long, value_name = "N", conflicts_with = "minutes",
          value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,
    /// Seconds of storms in a round
    #[arg(long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// The seed of the first round; each further one has the next
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Draw from these storms only [default: all]
    #[arg(long, value_name = "STORM", value_delimiter = ',')]
    storms: Vec<Storm>,
    /// Leave the kernel its own scheduler: what happens then is not perch's fault
    #[arg(long)]
    stock: bool,
    /// The host's time after which a guest that does not end has hung
    #[arg(long, value_name = "TIME", default_value = "2h", value_parser = time)]
    timeout: Duration,
    /// Keep the kernel's log of each round that failed in this folder
    #[arg(long, value_name = "FOLDER")]
    logs: Option<PathBuf>,
    /// Say nothing on stderr but errors
    #[arg(long, short)]
    quiet: bool,
}

/// A round's plan, in a guest.
#[derive(Args)]
pub struct RoundArguments {
    /// The plan, as JSON
    plan: String,
}

/// Carries out a round, in a guest.
pub fn run_round(arguments: &RoundArguments) -> Result<(), Failure> {
    let plan: Plan = serde_json::from_str(&arguments.plan)
        .map_err(|error| Failure::input(format!("the plan: {error}")))?;
    let report = perch_chaos::run(&plan);
    emit(&(report.json() + "\n"))
}

/// Carries out `perch lab chaos`.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let machine = perch_machine::resolve(&arguments.machine)?;
    let topology = Topology::new(&machine, arguments.cpus.0)?;
    let spinner = Spinner::new(arguments.quiet);
    let store = Store::open()?.with_progress(spinner.clone());
    let perch = guest::perch_for(topology.arch(), "/proc/self/exe".as_ref())?;
    let kernel = Kernel::find(&store, &arguments.kernel.kernel, topology.arch())?;
    if !arguments.stock && !kernel.sched_ext {
        let words = no_sched_ext(&kernel, "--kernel 7.2, or --stock");
        return Err(Failure::input(words));
    }
    let need = topology.need().with_clock(Clock::Deterministic);
    let qemu = Qemu::find(&store, need)?;
    let contents = guest::contents(&store, &kernel, &perch, [""; 0])?;
    let cpus = topology.cpus();
    let mut setup = Setup::new(kernel, qemu, topology, contents);
    setup.clock = Clock::Deterministic;
    setup.boot_timeout *= 4;
    setup.check()?;
    if let Some(folder) = &arguments.logs {
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::run(format!("cannot make {}: {error}", folder.display())))?;
    }

    let among = if arguments.storms.is_empty() { &Storm::ALL[..] } else { &arguments.storms };
    let rounds = match arguments.rounds {
        Some(rounds) => rounds,
        None => (60 * arguments.minutes).div_ceil(arguments.seconds).max(1),
    };
    let mut failed = Vec::new();
    for round in 0..rounds {
        let seed = arguments.seed.wrapping_add(round);
        let mut plan = Plan::draw(seed, cpus, arguments.seconds, among);
        if arguments.stock {
            plan.perch = None;
        }
        emit(&format!("{plan}\n"))?;
        spinner.step(&format!("round {} of {rounds}", round + 1), None);
        let found = in_guest(&mut setup, &plan, arguments.timeout);
        spinner.finish();
        match found {
            Ok(report) => {
                emit(&format!("  {report}\n"))?;
                if report.faults.is_empty() {
                    continue;
                }
                if let Some(folder) = &arguments.logs {
                    let file = folder.join(format!("{seed}.log"));
                    std::fs::write(&file, &report.log).map_err(|error| {
                        Failure::run(format!("cannot write {}: {error}", file.display()))
                    })?;
                }
            }
            Err(failure) => emit(&format!("  {}\n", failure.message))?,
        }
        failed.push(seed.to_string());
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::run(format!(
        "{} of {rounds} rounds failed: those of the seeds {}; repeat one with the same options and --rounds \
         1 --seed SEED",
        failed.len(),
        failed.join(", ")
    )))
}

/// Carries out a plan in a guest that boots for it.
fn in_guest(setup: &mut Setup, plan: &Plan, timeout: Duration) -> Result<Report, Failure> {
    let mut argv = agent::in_guest(CHAOS);
    argv.push(serde_json::to_string(plan).expect("a plan has only text keys"));
    setup.job = Some(guest::Command::new(argv).timeout(timeout));
    let guest = Guest::boot(setup)?;
    let job = guest.job().expect("the guest has a job");
    let hung = |error: perch_lab::Error| {
        let console = guest.console_tail(60);
        Failure::run(format!("the guest hung: {error}\n{console}"))
    };
    let output = job.wait().map_err(hung)?;
    if output.status != Status::Code(0) {
        let (status, words) = (&output.status, output.error_text());
        return Err(Failure::run(format!("the round ended with {status:?}: {words}")));
    }
    serde_json::from_str(&output.text())
        .map_err(|error| Failure::run(format!("the round's report: {error}")))
}

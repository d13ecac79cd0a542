// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch lab`: commands on machines that nobody owns, in guests with real kernels.

mod chaos;
mod coherence;
mod compare;
mod mark;
mod options;
mod pairs;
mod ping;
mod spinner;
mod teach;
mod waits;
mod watched;

use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use perch_lab::agent::{FAILED, Scheduled};
use perch_lab::guest::{self, Clock, Guest, Setup, Status};
use perch_lab::kernel::Kernel;
use perch_lab::qemu::Qemu;
use perch_lab::topology::DEFAULT_CPUS;
use perch_lab::{Arch, Cpus, Progress, Store, Topology};
use perch_machine::{Host, Machine};
use perch_plan::Settings;

use crate::agent;
use crate::arguments::Form;
use crate::output::{Failure, say};
pub use chaos::{CHAOS, RoundArguments, run_round};
pub use compare::{ARM, ArmArguments, run_arm};
use options::{GuestKernel, foresee, in_guest, no_sched_ext, time, watched};
pub use options::{Limit, limit, say_left_out};
pub use pairs::{PAIR, PairArguments, run_pair};
pub use ping::{PONG, PongArguments, run_pong};
pub use spinner::Spinner;
pub use teach::Lesson;
pub use watched::{WATCHED, WatchedArguments, run as run_watched};

/// The agent's command that runs another one under the scheduler, in a guest.
pub const SCHEDULED: &str = "scheduled";

/// The subcommands of `perch lab`.
#[derive(Subcommand)]
pub enum Command {
    /// Boot a guest that looks like a machine, and run a command in it
    // It has many options, and a mark none.
    Run(Box<RunArguments>),
    /// Run arms on a real kernel: its own scheduler, perch, any other, each in its own guest
    Compare(Box<compare::Arguments>),
    /// Set the recording of a real kernel beside one of its simulation by the rules of its era
    Teach(Box<teach::Arguments>),
    /// Tell a guest that counts cache lines where counting begins and ends
    #[command(subcommand)]
    Mark(mark::Marking),
    /// Send a byte there and back between two CPUs, and say what a round takes
    Ping(ping::Arguments),
    /// Have pairs of processes send a byte there and back, all at the same time
    Pairs(pairs::Arguments),
    /// Change what perch takes for granted, from a seed, and look whether every task still runs
    Chaos(Box<chaos::Arguments>),
}

/// The scheduler that the guest's kernel uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Scheduler {
    /// The kernel's own
    Stock,
    /// perch, loaded before the command starts and unloaded after it
    Perch,
}

/// A guest and a command.
#[derive(Args)]
pub struct RunArguments {
    /// The machine that the guest shows, by name or TOML file [default: this one]
    #[arg(long, short, value_name = "MACHINE")]
    machine: Option<String>,
    /// The guest's architecture [default: arm64 for a machine whose CPUs differ in capacity, else
    /// amd64]
    #[arg(long, value_name = "amd64|arm64", value_parser = Arch::from_str)]
    arch: Option<Arch>,
    #[command(flatten)]
    kernel: GuestKernel,
    /// The scheduler of the guest's kernel
    #[arg(long, value_enum, default_value = "stock")]
    scheduler: Scheduler,
    /// A mode or setting for `perch run` in the guest, as its --set takes them; with --scheduler
    /// perch
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// CPUs of the machine to keep, a number or `all`
    #[arg(long, value_name = "N", default_value_t = Limit(Cpus::AtMost(DEFAULT_CPUS)),
          value_parser = limit)]
    cpus: Limit,
    /// Another program that the command needs, by name or path; may be repeated
    #[arg(long, value_name = "PROGRAM")]
    with: Vec<String>,
    /// Count instructions instead of time: every run is the same, and takes longer
    #[arg(long)]
    deterministic: bool,
    /// Use the host's processor (/dev/kvm) instead of emulation; not tried by perch's tests
    #[arg(long, conflicts_with = "deterministic")]
    kvm: bool,
    /// How long the command may take
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time)]
    timeout: Duration,
    /// The guest's clocks show modelled time, by the machine's costs; implies --deterministic
    #[arg(long, conflicts_with = "kvm", help_heading = "Modelled time")]
    timed: bool,
    /// The seed of the command's start, so that repetitions differ
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        requires = "timed",
        help_heading = "Modelled time"
    )]
    seed: u64,
    /// Count the cache lines that move between CPUs while the command runs; implies --deterministic
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "table",
        conflicts_with = "kvm",
        help_heading = "Counting lines"
    )]
    coherence: Option<Form>,
    /// Count only between the marks that the command sets itself (perch lab mark)
    #[arg(long, requires = "coherence", help_heading = "Counting lines")]
    marked: bool,
    /// Count how long the command's tasks wait for a CPU and how far they move, and print it at the
    /// end; most of use with --timed
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "table",
        conflicts_with = "coherence"
    )]
    waits: Option<Form>,
    /// Keep what the guest's kernel writes to its console, all of it
    #[arg(long, value_name = "FILE")]
    console: Option<PathBuf>,
    /// Say nothing on stderr but errors and what the command says
    #[arg(long, short)]
    quiet: bool,
    /// The command: a program of this host, a packaged benchmark, or one of busybox
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The agent's arguments.
#[derive(Args)]
pub struct AgentArguments {
    /// The port to the host
    port: PathBuf,
    /// A file that holds the program to run first
    #[arg(long)]
    job: Option<PathBuf>,
}

/// A command under the scheduler, in a guest.
#[derive(Args)]
pub struct ScheduledArguments {
    #[arg(long)]
    set: Vec<String>,
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<String>,
}

impl From<perch_lab::Error> for Failure {
    fn from(error: perch_lab::Error) -> Failure {
        let code = if error.is_input() { 2 } else { 1 };
        Failure { code, message: error.to_string() }
    }
}

/// Carries out `perch lab`.
pub fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(arguments) => run_command(&arguments, &mut std::io::stdout(), |_| Ok(())),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Teach(arguments) => teach::run(&arguments),
        Command::Mark(marking) => mark::run(marking),
        Command::Ping(arguments) => ping::run(&arguments),
        Command::Pairs(arguments) => pairs::run(&arguments),
        Command::Chaos(arguments) => chaos::run(&arguments),
    }
}

/// Runs the agent, in a guest.
pub fn run_agent(arguments: &AgentArguments) -> Result<(), Failure> {
    let job = arguments.job.as_deref();
    perch_lab::agent::run(&arguments.port, job).map_err(|error| Failure::run(error.to_string()))
}

/// Runs a command under the scheduler, in a guest.
pub fn run_scheduled(arguments: ScheduledArguments) -> Result<(), Failure> {
    let mut scheduler = vec!["/bin/perch".to_string(), "run".to_string()];
    for setting in arguments.set {
        scheduler.extend(["--set".to_string(), setting]);
    }
    std::process::exit(Scheduled::new(scheduler, arguments.command).run().into())
}

/// Runs the command in a guest. Its stdout goes to `out`; when it has succeeded, `then` may take files
/// from the guest.
fn run_command(
    arguments: &RunArguments,
    out: &mut impl Write,
    then: impl FnOnce(&Guest) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let under_perch = arguments.scheduler == Scheduler::Perch;
    if !under_perch && !arguments.set.is_empty() {
        return Err(Failure::input(
            "--set is for perch, and the guest's scheduler is the kernel's own; add \
             --scheduler perch",
        ));
    }
    // perch refuses settings that perch run would refuse in the guest before the guest boots.
    Settings::default().set_all(&arguments.set)?;
    let topology = topology(arguments)?;
    let (argv, tools) = command_line(arguments);
    foresee(&tools, topology.arch())?;
    let deterministic = arguments.deterministic || arguments.coherence.is_some() || arguments.timed;
    let clock = if deterministic { Clock::Deterministic } else { Clock::Host };

    let spinner = Spinner::new(arguments.quiet);
    let store = Store::open()?.with_progress(spinner.clone());
    // The perch for the guest comes first: nothing can fetch it, so a user who lacks it learns that
    // at once.
    let perch = guest::perch_for(topology.arch(), "/proc/self/exe".as_ref())?;
    let kernel = Kernel::find(&store, &arguments.kernel.kernel, topology.arch())?;
    if under_perch && !kernel.sched_ext {
        let words = no_sched_ext(&kernel, "--kernel 7.2, or --scheduler stock");
        return Err(Failure::input(words));
    }
    let qemu = Qemu::find(&store, topology.need().with_clock(clock))?;
    let contents = guest::contents(&store, &kernel, &perch, tools)?;
    let command =
        guest::Command::new(if under_perch { scheduled(&arguments.set, argv) } else { argv });
    let command = command.timeout(arguments.timeout);
    let release = kernel.release.clone();
    let mut setup = Setup::new(kernel, qemu, topology, contents);
    setup.clock = clock;
    setup.coherence = arguments.coherence.is_some();
    setup.timed = arguments.timed;
    if let Some(file) = &arguments.console {
        setup.console = Some(file.clone());
        // A user who asks for the console wants to read all of it, not only problems.
        setup.kernel_words = Some("ignore_loglevel".to_string());
    }
    if arguments.kvm {
        setup.accelerator = guest::Accelerator::Kvm;
    }
    if deterministic {
        setup.job = Some(command.clone());
        setup.boot_timeout *= 4;
    }
    let cpus = setup.topology.cpus();
    spinner.step(&format!("booting Linux {release} on {cpus} CPUs"), None);
    let guest = Guest::boot(&setup)?;
    spinner.finish();
    if !arguments.quiet {
        summarise(&setup, &release, guest.boot_time());
    }
    let process = match guest.job() {
        Some(job) => job,
        None => guest.start(&command)?,
    };
    let status = process.stream(out, &mut std::io::stderr())?;
    if !arguments.quiet {
        for line in guest.trouble()? {
            say(format_args!("the guest's kernel said: {line}"));
        }
    }
    if let Some(form) = arguments.waits {
        show_waits(&guest, form, status)?;
    }
    if let Some((form, (counted, symbols))) = arguments.coherence.zip(guest.counted()?) {
        coherence::show(form, arguments, &setup, &release, (&counted, &symbols))?;
    }
    if status == Status::Code(0) {
        then(&guest)?;
    }
    finish(&guest, under_perch, status)
}

/// The guest's shape.
fn topology(arguments: &RunArguments) -> Result<Topology, Failure> {
    let machine = match &arguments.machine {
        Some(name) => perch_machine::resolve(name)?,
        None => Machine {
            name: "this-host".to_string(),
            // A guest of x86-64 has alike CPUs.
            ..Host::detect("/".as_ref())?.with_kernel_capacities().machine
        },
    };
    let cpus = arguments.cpus.0;
    Ok(match arguments.arch {
        Some(arch) => Topology::of(arch, &machine, cpus)?,
        None => Topology::new(&machine, cpus)?,
    })
}

/// Prints how the command's tasks waited.
fn show_waits(guest: &Guest, form: Form, status: Status) -> Result<(), Failure> {
    match guest.get(waits::FILE) {
        Ok(found) => waits::Waits::parse(&found)?.show(form),
        Err(error) if status == Status::Code(0) => Err(error.into()),
        // What went wrong before there were any is told instead.
        Err(_) => Ok(()),
    }
}

/// Turns the exit code of the command into that of perch.
fn finish(guest: &Guest, under_perch: bool, status: Status) -> Result<(), Failure> {
    if under_perch && status == Status::Code(FAILED.into()) {
        // The command may end with the same number; only the file tells that the scheduler failed.
        if let Ok(words) = guest.get(Scheduled::failure()) {
            let words = String::from_utf8_lossy(&words);
            return Err(Failure::run(format!("in the guest: {}", words.trim())));
        }
    }
    match status {
        Status::Code(0) => Ok(()),
        // A shell ends with 127 when it finds no such program; perch itself looks for a program
        // that is named directly before the boot.
        Status::Code(127) => Err(Failure::run(
            "the command ended with 127 in the guest: a program that it runs is not there; take \
             it along (--with PROGRAM)",
        )),
        Status::Code(code) => {
            Err(Failure::run(format!("the command ended with {code} in the guest")))
        }
        Status::Signal(signal) => {
            Err(Failure::run(format!("the command was ended by signal {signal} in the guest")))
        }
    }
}

/// The command line that the guest runs, and the programs that it needs besides busybox.
fn command_line(arguments: &RunArguments) -> (Vec<String>, Vec<String>) {
    let (argv, tools) = in_guest(&arguments.command, &arguments.with);
    let seed = arguments.timed.then_some(arguments.seed);
    let waits = arguments.waits.is_some();
    let counts = arguments.coherence.is_some();
    let argv = if arguments.timed || counts || waits {
        watched(seed, waits, counts && !arguments.marked, argv)
    } else {
        argv
    };
    (argv, tools)
}

fn scheduled(settings: &[String], command: Vec<String>) -> Vec<String> {
    let mut argv = agent::in_guest(SCHEDULED);
    for setting in settings {
        argv.extend(["--set".to_string(), setting.clone()]);
    }
    argv.push("--".to_string());
    argv.extend(command);
    argv
}

fn summarise(setup: &Setup, release: &str, boot_time: Duration) {
    let topology = &setup.topology;
    let clock = match (setup.timed, setup.clock.counts()) {
        (true, _) => ", in modelled time",
        (false, true) => ", deterministic",
        (false, false) => "",
    };
    say(format_args!(
        "Linux {release}, {} CPUs of {}, booted in {:.1} s{clock}",
        topology.cpus(),
        topology.machine().name,
        boot_time.as_secs_f64()
    ));
    say_left_out(topology);
}

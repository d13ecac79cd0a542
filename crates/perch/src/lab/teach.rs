// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch lab teach`: the recording of a real kernel beside one of its simulation, under the same load
//! on the same machine. Where they differ the model has something to learn.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, FromArgMatches, ValueEnum};
use perch_experiment::{Arm, CompareSpec, Plan};
use perch_lab::{Arch, Cpus, Topology};
use perch_machine::{ByDistance, Hardware, IdleState, Machine};
use perch_policy::Reason;
use perch_record::{Cause, Profile, steady};
use perch_report::{Align, Grid, figure, json, percent};
use perch_sim::RootDomain;
use perch_workload::Budget;
use schemars::JsonSchema;
use serde::Serialize;

use super::RunArguments;
use super::options::{GuestKernel, Limit, limit};
use super::ping::By;
use crate::arguments::{duration_ns, quoted};
use crate::compare;
use crate::fresh;
use crate::output::{Failure, emit, say};
use crate::recording::Recording;

/// The recording, in a guest.
const FILE: &str = "/tmp/perch-teach.perch";
/// What a pair does before the guest's measured 10 ms, which a guest in modelled time can afford.
const GUEST_TIMES: &str = "--warmup 20ms --measure 10ms";
/// The simulator's times. Its pairs are then as old as the guest's: a task's averages remember its start
/// for a tenth of a second.
const WARMUP_NS: u64 = 40_000_000;
const MEASURE_NS: u64 = 20_000_000;
/// Reasons that are rarer in every recording, as a share, are one row.
const RARE: f64 = 0.005;

/// The load, the machine and the kernel; or two recordings.
#[derive(Args)]
pub struct Arguments {
    /// The machine, by name or TOML file
    #[arg(
        long,
        short,
        value_name = "MACHINE",
        required_unless_present = "guest",
        conflicts_with = "guest"
    )]
    machine: Option<String>,
    #[command(flatten)]
    kernel: GuestKernel,
    /// CPUs of the machine to keep, a number or `all`
    #[arg(long, value_name = "N", default_value_t = Limit(Cpus::All), value_parser = limit)]
    cpus: Limit,
    /// How the pairs of processes send their byte
    #[arg(long, value_enum, default_value = "tcp")]
    by: By,
    /// Numbers of pairs, each with a guest of its own: 8,10,12
    #[arg(long, value_name = "N,…", value_delimiter = ',', required_unless_present = "guest",
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    pairs: Vec<u32>,
    /// The seed of the load's start in the guest, and of the simulation
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Instead of a guest: a recording of its kernel
    #[arg(long, value_name = "FILE", requires = "simulated")]
    guest: Option<PathBuf>,
    /// Instead of a simulation: a recording of one, as `perch compare --record` writes it
    #[arg(long, value_name = "FILE", requires = "guest")]
    simulated: Option<PathBuf>,
    /// How much of each recording counts, up to the end of its load
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = duration_ns)]
    window: u64,
    /// Keep the recordings, and the result as result.json, in this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "guest")]
    keep: Option<PathBuf>,
    /// How to write the result
    #[arg(long, value_enum, default_value = "table")]
    format: Form,
    /// Say nothing on stderr but errors
    #[arg(long, short)]
    quiet: bool,
}

/// The form of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Table,
    Markdown,
    Json,
}

/// What perch was taught.
#[derive(Serialize, JsonSchema)]
#[schemars(description = "")]
pub struct Lesson {
    /// The version of perch.
    perch: &'static str,
    /// The version of the model: builds of one version simulate the same.
    model: &'static str,
    /// The loads.
    loads: Vec<Pair>,
}

/// One load, recorded twice.
#[derive(Serialize, JsonSchema)]
struct Pair {
    /// The number of pairs; null of recordings that were there before.
    pairs: Option<u32>,
    /// The real kernel's recording.
    guest: Profile,
    /// The simulator's.
    simulated: Profile,
}

/// Carries out `perch lab teach`.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let loads = match (&arguments.guest, &arguments.simulated) {
        (Some(guest), Some(simulated)) => vec![Pair::read(None, [guest, simulated], arguments)?],
        _ => record(arguments)?,
    };
    let lesson = Lesson { perch: env!("CARGO_PKG_VERSION"), model: perch_experiment::MODEL, loads };
    if let Some(folder) = &arguments.keep {
        fresh::write(&folder.join("result.json"), &json(&lesson))?;
    }
    emit(&match arguments.format {
        Form::Table => lesson.text(Grid::text),
        Form::Markdown => lesson.text(Grid::markdown),
        Form::Json => json(&lesson),
    })
}

/// Runs a guest and a simulation for each number of pairs.
fn record(arguments: &Arguments) -> Result<Vec<Pair>, Failure> {
    let name = arguments.machine.as_deref().expect("clap asks for it");
    let machine = perch_machine::resolve(name)?;
    // perch refuses a machine that cannot be a guest's before it makes a folder.
    let topology = Topology::of(Arch::X86_64, &machine, arguments.cpus.0)?;
    let cannot = |error: std::io::Error| Failure::run(format!("cannot make a folder: {error}"));
    let temporary = tempfile::tempdir().map_err(cannot)?;
    let folder = arguments.keep.as_deref().unwrap_or(temporary.path());
    std::fs::create_dir_all(folder).map_err(cannot)?;
    let by = arguments.by.name();
    let load = |&pairs| {
        let [guest, simulated] =
            ["guest", "simulated"].map(|whose| folder.join(format!("{whose}-{by}-{pairs}.perch")));
        record_guest(arguments, name, pairs, &guest)?;
        simulate(arguments, &topology, pairs, [&guest, &simulated])?;
        Pair::read(Some(pairs), [&guest, &simulated], arguments)
    };
    arguments.pairs.iter().map(load).collect()
}

/// Records the load in a guest, as `perch lab run` does.
fn record_guest(
    arguments: &Arguments,
    machine: &str,
    pairs: u32,
    file: &Path,
) -> Result<(), Failure> {
    let by = arguments.by.name();
    let script = format!(
        "ip link set lo up; perch record --buffer 128m -o {FILE} -- perch lab pairs --by {by} --pairs {pairs} {GUEST_TIMES}"
    );
    let [cpus, seed] = [arguments.cpus.to_string(), arguments.seed.to_string()];
    let mut words =
        vec!["run", "-m", machine, "--kernel", &arguments.kernel.kernel, "--cpus", &cpus];
    words.extend(["--timed", "--seed", &seed, "--timeout", "1h", "--with", "ip"]);
    words.extend(arguments.quiet.then_some("-q"));
    words.extend(["--", "sh", "-c", &script]);
    let command = RunArguments::augment_args(clap::Command::new("run"));
    let parsed = RunArguments::from_arg_matches(&command.get_matches_from(words));
    let parsed = parsed.expect("perch's own words");
    // What the pairs achieved stands beside the table, not in it.
    super::run_command(&parsed, &mut std::io::stderr(), |guest| {
        let bytes = guest.get(FILE)?;
        std::fs::write(file, bytes)
            .map_err(|error| Failure::run(format!("cannot write {}: {error}", file.display())))
    })
}

/// Simulates the load by the rules of the guest's kernel, and records it.
fn simulate(
    arguments: &Arguments,
    topology: &Topology,
    pairs: u32,
    [guest, file]: [&Path; 2],
) -> Result<(), Failure> {
    let recorded = Recording::open(guest, None, true)?;
    let (era, modes) = (recorded.model.era(), recorded.model.modes());
    let machine = Arc::new(in_modelled_time(topology.machine()));
    let pairs = load(arguments.by, pairs);
    let spec = CompareSpec {
        topology: perch_policy::Topology::new(&machine),
        machine,
        era,
        hz: recorded.header.hz,
        root_domain: RootDomain::default(),
        workload: pairs,
        arms: vec![Arm::parse(&format!("simulated:{modes}"), era)?],
        plan: Plan::by_hand(WARMUP_NS, MEASURE_NS, Some(1)),
        statistics: false,
        seed: arguments.seed,
        jobs: 1,
        budget: Budget::DEFAULT,
    };
    compare::record(&spec, file, arguments.quiet)
}

/// The machine with the costs of a guest in modelled time: there an instruction takes a nanosecond, and no
/// line has a way to go (docs/calibration.md#what-a-move-costs).
fn in_modelled_time(machine: &Machine) -> Machine {
    let hardware = Hardware {
        transfer_ns: ByDistance([0; 7]),
        ipi_ns: ByDistance([300; 7]),
        llc_hit_ns: 0,
        memory_ns: (0, 0),
        // With what `perch record` takes after the choice; the rest comes before it.
        wake_ns: 1000,
        switch_in_ns: Some(3600),
        examine_ns: 100,
        balance_ns: 1400,
        balance_lines: 0,
        tick_ns: 3000,
        idle_states: vec![IdleState { name: "HLT".to_string(), exit_ns: 200, residency_ns: 1 }],
        ..machine.hardware.clone()
    };
    Machine { hardware, ..machine.clone() }
}

/// The load as a workload: the work of a side before and after it wakes the other one as four pairs do it
/// in a guest, undisturbed, and beside them `perch record`, which reads without a pause.
fn load(by: By, pairs: u32) -> String {
    match by {
        By::Tcp => format!("tcp_rr:n={pairs},before_ns=7340,after_ns=1000,hogs=1"),
        By::Udp => format!("udp_rr:n={pairs},before_ns=4900,after_ns=1000,hogs=1"),
        By::Pipe => format!("pipe:pairs={pairs},write_ns=2450,read_ns=1000,hogs=1"),
    }
}

impl Pair {
    /// Reads two recordings.
    fn read(pairs: Option<u32>, files: [&Path; 2], arguments: &Arguments) -> Result<Pair, Failure> {
        let [guest, simulated] = files.map(|file| profile(file, arguments));
        let (guest, simulated) = (guest?, simulated?);
        if guest.is_simulated() || !simulated.is_simulated() {
            let [guest, simulated] = files.map(|file| quoted(&file.display().to_string()));
            return Err(Failure::input(format!(
                "--guest {guest} --simulated {simulated}: expected a recording of a kernel, as perch \
                 record writes it, and one of a simulation, as perch compare --record does"
            )));
        }
        if guest.era != simulated.era && !arguments.quiet {
            say(format_args!(
                "the guest's kernel has the rules of {}, and the simulated one those of {}",
                guest.era, simulated.era
            ));
        }
        Ok(Pair { pairs, guest, simulated })
    }
}

fn profile(file: &Path, arguments: &Arguments) -> Result<Profile, Failure> {
    // The end of the load is known only when all of it was read.
    let mut recording = Recording::open(file, None, true)?;
    let topology = recording.topology.clone();
    let span = steady(&mut recording.reader, &topology, recording.model, arguments.window);
    let span = span.map_err(|error| recording.wrong(error))?;
    let span = span.ok_or_else(|| recording.no_wake_ups(0))?;
    let mut recording = Recording::open(file, None, arguments.quiet)?;
    let read = Profile::read(&mut recording.reader, &topology, recording.model, span);
    let profile = read.map_err(|error| recording.wrong(error))?;
    recording.warn();
    Ok(profile)
}

/// How a row's figures are shown, and how they differ.
#[derive(Clone, Copy)]
enum Row {
    /// As percentages, which differ by points.
    Share,
    /// As they are; they differ by a percentage of the guest's.
    Figure,
}

impl Row {
    /// The cells of the guest, of the simulation, and of their difference.
    fn cells(self, [guest, simulated]: [Option<f64>; 2]) -> [String; 3] {
        let one = |value: f64| match self {
            Row::Share => format!("{:.1}", 100.0 * value),
            Row::Figure => figure(value),
        };
        let difference = |(a, b): (f64, f64)| match self {
            // A difference that rounds to 0 has no minus.
            Row::Share => format!("{:+.1}", (1000.0 * (b - a)).round() / 10.0 + 0.0),
            Row::Figure => percent(100.0 * (b - a) / a),
        };
        let dash = || "-".to_string();
        [
            guest.map_or_else(dash, one),
            simulated.map_or_else(dash, one),
            guest.zip(simulated).map_or_else(dash, difference),
        ]
    }
}

fn share_of(profile: &Profile, reason: &str) -> f64 {
    profile.reasons.get(reason).copied().unwrap_or(0.0)
}

/// The rows of one recording; `often` are the reasons that have a row of their own.
fn rows(p: &Profile, often: &[&str]) -> Vec<(Row, String, Option<f64>)> {
    let us = |ns: Option<f64>| ns.map(|ns| ns / 1e3);
    // A simulation has nothing that its replay could disagree with.
    let replay = (!p.is_simulated()).then_some(&p.agreement);
    let cause = |cause: Cause| Some(p.causes[cause.name()] as f64 / p.wake_ups.max(1) as f64);
    let shares = often.iter().map(|reason| share_of(p, reason));
    let others = 1.0 - shares.clone().sum::<f64>();
    let shares = often.iter().zip(shares);
    let mut rows: Vec<_> =
        (shares.map(|(reason, share)| (Row::Share, format!("{reason}, %"), Some(share)))).collect();
    let further = [
        (Row::Share, "other reasons, %", Some(others)),
        (Row::Share, "never left their queue, % of all", p.never_left),
        (Row::Figure, "migrations per wake-up", Some(p.migrations)),
        (Row::Figure, "pulled by balancing, 1/s", Some(p.pulled_per_second)),
        (Row::Share, "CPUs idle at a wake-up, %", p.idle),
        (Row::Figure, "scan budget, CPUs", p.scan_budget),
        (Row::Figure, "CPUs examined per search", p.examined),
        (Row::Figure, "wake-ups, 1/s", Some(p.per_second)),
        (Row::Figure, "woken until it wakes: mean, us", us(p.to_wake.mean_ns)),
        (Row::Figure, "woken until it wakes: median, us", us(p.to_wake.median_ns)),
        (Row::Figure, "then seen busy for: mean, us", us(p.to_idle.mean_ns)),
        (Row::Figure, "then seen busy for: median, us", us(p.to_idle.median_ns)),
        (Row::Share, "then taken before seen idle, %", p.taken),
        (Row::Share, "replay agrees, %", replay.and_then(|all| all.total.share)),
    ];
    rows.extend(further.map(|(row, name, value)| (row, name.to_string(), value)));
    for why in Cause::ALL {
        let name = format!("replay: {}, %", why.name());
        rows.push((Row::Share, name, replay.and_then(|_| cause(why))));
    }
    let worst = replay.and_then(|all| all.worst.as_ref()?.part.share);
    rows.push((Row::Share, "replay's worst reason agrees, %".to_string(), worst));
    rows
}

impl Lesson {
    fn text(&self, form: impl Fn(&Grid) -> String) -> String {
        let mut text = String::new();
        for load in &self.loads {
            let (guest, simulated) = (&load.guest, &load.simulated);
            let _ = writeln!(
                text,
                "{} on Linux {}, {} wake-ups in {:.1} ms; {} on the rules of {}, {} in {:.1} ms",
                guest.command.join(" "),
                guest.kernel,
                guest.wake_ups,
                guest.span_ns as f64 / 1e6,
                simulated.command.join(" "),
                simulated.era,
                simulated.wake_ups,
                simulated.span_ns as f64 / 1e6,
            );
            if let Some(worst) = &guest.agreement.worst {
                let _ = writeln!(text, "replay of the guest agrees least about: {}", worst.reason);
            }
        }
        text + "\n" + &form(&self.grid())
    }

    fn grid<'a>(&'a self) -> Grid {
        let mut grid = Grid::new(&[""], &[]);
        for load in &self.loads {
            let group = load.pairs.map_or(String::new(), |n| format!("{n} pairs"));
            grid.columns(&group, &["guest", "simulated", "difference"], Align::Right);
        }
        let both = |load: &'a Pair| [&load.guest, &load.simulated];
        let is_often = |reason: &&str| {
            let mut profiles = self.loads.iter().flat_map(both);
            profiles.any(|profile| share_of(profile, reason) >= RARE)
        };
        let reasons = Reason::ALL.iter().map(|reason| reason.name());
        let often: Vec<&str> = reasons.filter(is_often).collect();
        let columns: Vec<_> = (self.loads.iter())
            .map(|load| both(load).map(|profile| rows(profile, &often)))
            .collect();
        for (i, (row, name, _)) in rows(&self.loads[0].guest, &often).into_iter().enumerate() {
            let cells = columns.iter().flat_map(|both| row.cells([both[0][i].2, both[1][i].2]));
            grid.row([name].into_iter().chain(cells).collect());
        }
        grid
    }
}

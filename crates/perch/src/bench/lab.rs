// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch bench --lab` measures the instructions that a decision takes, of the live scheduler and
//! of every other scheduler that this host has. perch loads each of them in a deterministic guest
//! of its own, where the agent's command [`GUEST`] measures it.

mod collect;
mod figures;
mod table;

use std::collections::BTreeSet;
use std::env;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use perch_lab::guest::{self, Clock, Guest, Setup};
use perch_lab::kernel::Kernel;
use perch_lab::qemu::Qemu;
use perch_lab::{Arch, Cpus, Progress, Store, Topology};
use perch_plan::Settings;
use perch_report::Format;

use super::row;
use crate::agent;
use crate::lab::Spinner;
use crate::output::{Failure, emit_as, say};
pub use collect::{GuestArguments, NAME as GUEST, run as run_in_guest};
use figures::{Result as Measured, Row};

/// CPUs of the guest unless `--cpus` says otherwise.
const CPUS: usize = 8;

/// The time that a guest may take for all of its measurements, for each of its CPUs.
const LIMIT: Duration = Duration::from_secs(90);
/// The least such time, whatever the number of CPUs.
const LEAST: Duration = Duration::from_secs(1200);

/// The arguments of `perch bench --lab`.
#[derive(Args)]
pub struct LabArguments {
    /// Measure what a decision costs, of perch and of every scx_* scheduler in ~/.cargo/bin or on
    /// the PATH, in deterministic guests of 8 CPUs (or --cpus)
    #[arg(long)]
    lab: bool,
    /// Only these schedulers: perch-off, perch-cluster, perch:SETTINGS as run --set takes them
    /// (perch:cache=perch,waits=true), or a name or path of another; may be repeated
    #[arg(long, value_name = "NAME", requires = "lab")]
    scheduler: Vec<String>,
    /// Run the workloads' tasks as threads of one process, not as processes
    #[arg(long, requires = "lab")]
    threads: bool,
    /// Measure on this machine of the library or of a file, cut to --cpus, instead of a regular one
    #[arg(long, short, value_name = "MACHINE", requires = "lab")]
    machine: Option<String>,
    /// The guests' kernel: a version such as 7.2, or a file
    #[arg(
        long,
        value_name = "VERSION|FILE",
        default_value = "",
        hide_default_value = true,
        requires = "lab"
    )]
    kernel: String,
    /// Say nothing on stderr but errors
    #[arg(long, short, requires = "lab")]
    quiet: bool,
}

impl LabArguments {
    /// Returns whether the user asked for measurements in guests.
    pub fn is_asked_for(&self) -> bool {
        self.lab
    }
}

/// A scheduler to be measured.
struct Candidate {
    name: String,
    /// The program on the host; `None` for perch itself, which every guest has.
    program: Option<PathBuf>,
    argv: Vec<String>,
}

impl Candidate {
    fn perch(name: &str, settings: &str) -> Candidate {
        let argv = ["/bin/perch", "run", "--set", settings];
        Candidate {
            name: name.to_string(),
            program: None,
            argv: argv.map(str::to_string).to_vec(),
        }
    }

    fn other(path: PathBuf) -> Candidate {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Candidate {
            name: name.to_string(),
            argv: vec![format!("/bin/{name}")],
            program: Some(path),
        }
    }
}

/// Carries out `perch bench --lab`.
pub fn run(arguments: &LabArguments, sizes: &[usize], format: Format) -> Result<(), Failure> {
    let sizes = if sizes.is_empty() { &[CPUS] } else { sizes };
    let candidates = candidates(&arguments.scheduler)?;
    let spinner = Spinner::new(arguments.quiet);
    let store = Store::open()?.with_progress(spinner.clone());
    let kernel = Kernel::find(&store, &arguments.kernel, Arch::X86_64)?;
    kernel.require_sched_ext()?;
    let mut result = Measured::default();
    for &cpus in sizes {
        let topology = match &arguments.machine {
            Some(name) => Topology::new(&perch_machine::resolve(name)?, Cpus::AtMost(cpus))?,
            None => Topology::new(&row::machine(cpus)?, Cpus::All)?,
        };
        for candidate in &candidates {
            let what = format!(
                "{} on {cpus} CPUs, Linux {}",
                candidate.name, kernel.release
            );
            spinner.step(&what, None);
            match measure(&store, &kernel, &topology, candidate, arguments.threads) {
                Ok(found) => result.rows.extend(found.into_iter().map(|found| Row {
                    scheduler: candidate.name.clone(),
                    cpus,
                    kernel: kernel.release.clone(),
                    found,
                })),
                Err(failure) => result
                    .failures
                    .push(format!("{what}: {}", failure.message.trim())),
            }
        }
    }
    spinner.finish();
    if result.rows.is_empty() {
        return Err(Failure::run(result.failures.join("\nperch: ")));
    }
    for words in &result.failures {
        say(words);
    }
    emit_as(format, &table::write(&result, format))
}

/// Boots a guest, and runs the measurements in it.
fn measure(
    store: &Store,
    kernel: &Kernel,
    topology: &Topology,
    candidate: &Candidate,
    threads: bool,
) -> Result<Vec<collect::Found>, Failure> {
    let clock = Clock::Deterministic;
    let qemu = Qemu::find(store, topology.need().with_clock(clock))?;
    let perch = "/proc/self/exe".as_ref();
    let mut contents = guest::contents(store, kernel, perch, ["perf", "hackbench"])?;
    if let Some(program) = &candidate.program {
        contents.program(program, &candidate.argv[0])?;
    }
    let mut argv = agent::in_guest(GUEST);
    argv.extend(threads.then(|| "--threads".to_string()));
    argv.push("--".to_string());
    argv.extend(candidate.argv.iter().cloned());
    let limit = LEAST.max(LIMIT * topology.cpus() as u32);
    let job = guest::Command::new(argv).timeout(limit);
    let mut setup = Setup::new(kernel.clone(), qemu, topology.clone(), contents);
    setup.clock = clock;
    setup.boot_timeout *= 4;
    setup.job = Some(job);
    let guest = Guest::boot(&setup)?;
    let job = guest.job().expect("the setup has a job, asked for once");
    let output = job.wait()?;
    if !output.success() {
        let why = guest.get(perch_lab::agent::Scheduled::failure());
        let why = String::from_utf8_lossy(&why.unwrap_or_default()).into_owned();
        return Err(Failure::run(format!("{why}\n{}", output.error_text())));
    }
    serde_json::from_str(&output.text())
        .map_err(|error| Failure::run(format!("the guest's answer: {error}")))
}

/// perch with two sets of modes and the other schedulers of this host, or those that `wanted`
/// names.
fn candidates(wanted: &[String]) -> Result<Vec<Candidate>, Failure> {
    let mut all = vec![
        Candidate::perch("perch-off", "cluster=off"),
        Candidate::perch("perch-cluster", "cluster=perch"),
    ];
    all.extend(others().into_iter().map(Candidate::other));
    if wanted.is_empty() {
        return Ok(all);
    }
    let mut chosen = Vec::new();
    for name in wanted {
        if let Some(words) = name.strip_prefix("perch:") {
            let read = Settings::default().set(words);
            read.map_err(|error| Failure::input(format!("--scheduler {name}: {error}")))?;
            chosen.push(Candidate::perch(name, words));
            continue;
        }
        if name.contains('/') {
            chosen.push(Candidate::other(PathBuf::from(name)));
            continue;
        }
        let at = all.iter().position(|candidate| candidate.name == *name);
        let at = at.ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
            Failure::input(format!(
                "--scheduler {name}: expected a path or one of those on this host: {}",
                names.join(", ")
            ))
        })?;
        chosen.push(all.remove(at));
    }
    Ok(chosen)
}

/// The scx_* programs of cargo's folder and the PATH, each name once, sorted.
fn others() -> Vec<PathBuf> {
    let cargo = env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = cargo.map(|cargo| cargo.join("bin")).into_iter();
    let mut names = BTreeSet::new();
    let mut found = Vec::new();
    for folder in folders.chain(env::split_paths(&path)) {
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_scheduler = name.to_string_lossy().starts_with("scx_")
                && !TOOLS.contains(&&*name.to_string_lossy());
            if is_scheduler && entry.path().is_file() && names.insert(name) {
                found.push(entry.path());
            }
        }
    }
    found.sort_by_key(|path| path.file_name().map(ToOwned::to_owned));
    found
}

/// Programs of the same family that schedule nothing.
const TOOLS: [&str; 3] = ["scx_loader", "scx_lib_selftests", "scx_stats_client"];

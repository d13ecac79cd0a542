// SPDX-License-Identifier: GPL-2.0-or-later
//! The guests of a comparison: what they have in common, and one measurement in one of them.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use perch_experiment::{ArmKernel, CountRow, MeasuredScore, Measurement};
use perch_lab::agent::{FAILED, Scheduled};
use perch_lab::guest::{self, Clock, Guest, Output, Setup, Status};
use perch_lab::initramfs::Contents;
use perch_lab::qemu::Qemu;
use perch_lab::{Store, Topology};

use super::super::options::{foresee, in_guest, watched};
use super::arguments::Arguments;
use super::arm::{Arm, Scheduler};
use super::decisions::{self, Decisions};
use super::inside;
use super::kernels::{self, Kernels, refused};
use super::score::{scores, tail};
use super::wanted::Wanted;
use crate::arguments::threads;
use crate::output::Failure;

/// The host's memory that a guest takes, MiB: 64 CPUs take 430.
const GUEST_MIB: u64 = 450;

/// The longest time between two ticks of a kernel's clock, at 100 Hz.
const TICK_NS: u64 = 10_000_000;

/// All that the guests of a comparison are made of.
pub struct Guests {
    /// The machine that they show.
    pub topology: Topology,
    kernels: Kernels,
    qemu: Qemu,
    /// The files of each arm's guests.
    contents: Vec<Contents>,
    /// The arms, the words of whose programs are those in a guest.
    arms: Vec<Arm>,
    command: Vec<String>,
    wanted: Vec<Wanted>,
    timeout: Duration,
    settle: Duration,
    timed: bool,
    outputs: Option<PathBuf>,
    /// The decisions of each arm, where they are recorded.
    decisions: Option<Mutex<Vec<Decisions>>>,
    /// Words for the user beside the scores, with the arm and the repetition.
    trouble: Mutex<Vec<(usize, u32, String)>>,
}

/// Makes a setup that of one repetition, and wraps its command: this function alone decides what
/// clocks the guests have, and what a seed changes in them. The kernel mixes its command line into
/// its random numbers, so that an unknown word gives each repetition its own.
fn prepare(setup: &mut Setup, timed: bool, seed: u64, command: &[String]) -> Vec<String> {
    setup.clock = Clock::Deterministic;
    setup.boot_timeout *= 4;
    let words = setup.kernel_words.get_or_insert_default();
    words.push_str(&format!(" perch.seed={seed:016x}"));
    setup.timed = timed;
    if timed { watched(Some(seed), false, false, command.to_vec()) } else { command.to_vec() }
}

impl Guests {
    /// Finds everything, and fetches what is not here.
    pub fn find(
        arguments: &Arguments,
        store: &Store,
        topology: Topology,
    ) -> Result<Guests, Failure> {
        let mut arms = arguments.arms.clone();
        let (command, mut tools) = in_guest(&arguments.command, &arguments.with);
        for arm in &mut arms {
            if let Scheduler::Program(words) = &mut arm.scheduler {
                let (there, more) = in_guest(words, &[]);
                *words = there;
                tools.extend(more);
            }
        }
        foresee(&tools, topology.arch())?;
        // The perch for the guest comes first: nothing can fetch it.
        let perch = guest::perch_for(topology.arch(), "/proc/self/exe".as_ref())?;
        let kernels = Kernels::find(&arguments.arms, &arguments.kernel, store, topology.arch())?;
        for (index, arm) in arms.iter().enumerate() {
            if arm.kernel.clusters_hidden {
                let hidden = topology.clone().without_clusters();
                hidden.map_err(|error| refused(arm, &error.to_string()))?;
            }
            kernels::check(arm, kernels.of(index), arguments.decisions)?;
        }
        let need = topology.need().with_clock(Clock::Deterministic);
        let qemu = Qemu::find(store, need)?;
        // All arms of a kernel have the same files, so that no arm differs by what it does not use.
        let contents =
            kernels.each(|kernel| Ok(guest::contents(store, kernel, &perch, &tools)?))?;
        let guests = Guests {
            topology,
            kernels,
            qemu,
            contents,
            arms,
            command,
            wanted: arguments.scores.clone(),
            timeout: arguments.timeout,
            settle: arguments.settle,
            timed: !arguments.untimed,
            outputs: arguments.outputs.clone(),
            decisions: (arguments.decisions)
                .then(|| Mutex::new(vec![Decisions::default(); arguments.arms.len()])),
            trouble: Mutex::default(),
        };
        // The second arm's kernel is looked at before the first arm's guests run for minutes.
        for (index, arm) in guests.arms.iter().enumerate() {
            let setup = guests.setup(index, 0, false);
            let fits = setup.and_then(|setup| setup.check());
            fits.map_err(|error| refused(arm, &error.to_string()))?;
        }
        Ok(guests)
    }

    /// The kernel of each arm.
    pub fn kernels(&self) -> Vec<ArmKernel> {
        self.kernels.named(&self.arms)
    }

    /// Describes the guests in words.
    pub fn place(&self) -> String {
        let clocks =
            if self.timed { "in modelled time" } else { "whose clocks count instructions" };
        format!("a guest of {} CPUs {clocks}", self.topology.cpus())
    }

    /// Guests at a time.
    pub fn jobs(&self, arguments: &Arguments) -> usize {
        let all = arguments.arms.len() * arguments.repetitions as usize;
        let room = (available_mib() / GUEST_MIB) as usize;
        let jobs = match arguments.jobs {
            Some(jobs) => jobs as usize,
            None => threads(None).min(room),
        };
        jobs.clamp(1, all.max(1))
    }

    /// Words for the user beside the scores, in the order of arms and repetitions.
    pub fn trouble(&self) -> Vec<String> {
        let trouble = self.trouble.lock();
        let mut trouble = trouble.unwrap_or_else(PoisonError::into_inner).clone();
        trouble.sort();
        let line = |(arm, repetition, line): &(usize, u32, String)| {
            let arm = &self.arms[*arm].name;
            format!("arm {arm}, repetition {repetition}: {line}")
        };
        trouble.iter().map(line).collect()
    }

    /// The decisions by reason; empty where none were recorded.
    pub fn decisions(&self) -> Vec<CountRow> {
        let recorded = self.decisions.as_ref();
        recorded.map_or(Vec::new(), |recorded| {
            let recorded = recorded.lock().unwrap_or_else(PoisonError::into_inner);
            decisions::rows(&recorded)
        })
    }

    /// Makes a measurement. Where decisions are recorded, another guest of the same seed does so.
    ///
    /// # Errors
    /// The reason, with the output where that helps.
    pub fn measure(&self, at: Measurement) -> Result<Vec<MeasuredScore>, Failure> {
        let scores = self.score(at)?;
        if let Some(decisions) = self.decisions.as_ref() {
            let found = self.record(at)?;
            if let Some(doubt) = found.doubt() {
                let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
                trouble.push((at.arm, at.repetition, doubt));
            }
            let mut all = decisions.lock().unwrap_or_else(PoisonError::into_inner);
            all[at.arm].add(&found);
        }
        Ok(scores)
    }

    /// Boots the guest that records an arm's decisions, and reads its recording.
    fn record(&self, at: Measurement) -> Result<Decisions, Failure> {
        let (guest, output) = run(&self.setup(at.arm, at.seed, true)?)?;
        let recording = ended(&guest, &output).and_then(|()| Ok(guest.get(decisions::FILE)?));
        let recording = recording.map_err(|why| why.of("in the guest that records decisions"));
        Decisions::read(&recording?)
    }

    /// Boots the guest of a measurement, runs the command in it and reads the scores.
    fn score(&self, at: Measurement) -> Result<Vec<MeasuredScore>, Failure> {
        let arm = &self.arms[at.arm];
        let (guest, output) = run(&self.setup(at.arm, at.seed, false)?)?;
        self.check_release(&guest, at)?;
        self.note(&guest, at)?;
        let text = output.text();
        if let Some(folder) = &self.outputs {
            let file = folder.join(format!("{}.{}.txt", arm.name, at.repetition));
            std::fs::write(&file, &text).map_err(|error| {
                Failure::run(format!("cannot write {}: {error}", file.display()))
            })?;
        }
        ended(&guest, &output)?;
        scores(&text, &self.wanted)
    }

    /// Keeps the words about a guest that a user needs beside its scores.
    fn note(&self, guest: &Guest, at: Measurement) -> perch_lab::Result<()> {
        let complaints = guest.trouble()?;
        let complaints = complaints.into_iter();
        let said = complaints.map(|line| format!("the guest's kernel said: {line}"));
        // There is no such file where all was well.
        let late = guest.get(inside::LATE).ok().map(|seconds| {
            let seconds = String::from_utf8_lossy(&seconds).into_owned();
            format!(
                "the command began {seconds} s later than in other arms, because its scheduler took \
                 so long to load; have all of them wait for it (--settle)"
            )
        });
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.extend(said.chain(late).map(|line| (at.arm, at.repetition, line)));
        Ok(())
    }

    /// Returns an error unless the guest runs the kernel that the result names.
    fn check_release(&self, guest: &Guest, at: Measurement) -> Result<(), Failure> {
        let found = guest.get("/proc/sys/kernel/osrelease")?;
        let found = String::from_utf8_lossy(&found);
        let expected = &self.kernels.of(at.arm).release;
        if found.trim() == expected {
            return Ok(());
        }
        Err(Failure::run(format!(
            "the guest's kernel says that it is {}, and its image that it is {expected}",
            found.trim()
        )))
    }

    fn setup(&self, arm: usize, seed: u64, is_recorded: bool) -> perch_lab::Result<Setup> {
        let (kernel, contents) = (self.kernels.of(arm), &self.contents[arm]);
        let arm = &self.arms[arm];
        let mut topology = self.topology.clone();
        if arm.kernel.clusters_hidden {
            topology = topology.without_clusters()?;
        }
        let (kernel, qemu) = (kernel.clone(), self.qemu.clone());
        let mut setup = Setup::new(kernel, qemu, topology, contents.clone());
        if !arm.kernel.boot.is_empty() {
            setup.kernel_words = Some(arm.kernel.boot.join(" "));
        }
        let mut command = prepare(&mut setup, self.timed, seed, &self.command);
        if is_recorded {
            command = decisions::recorded(command);
        }
        // The command begins at any point of a tick, which the seed chooses.
        let settle = self.settle + Duration::from_nanos(seed % TICK_NS);
        let job = guest::Command::new(inside::words(arm, settle, &command));
        setup.job = Some(job.timeout(self.timeout));
        Ok(setup)
    }
}

/// Boots a guest and waits for the end of its job.
fn run(setup: &Setup) -> perch_lab::Result<(Guest, Output)> {
    let guest = Guest::boot(setup)?;
    let job = guest.job().expect("the setup has a job, asked for once");
    let output = job.wait()?;
    Ok((guest, output))
}

/// Returns an error unless the command ended well, and its scheduler with it.
fn ended(guest: &Guest, output: &Output) -> Result<(), Failure> {
    let how = match output.status {
        Status::Code(0) => return Ok(()),
        Status::Code(code) if code == u32::from(FAILED) => {
            // The command may end with the same number; only the file tells that the arm failed.
            match guest.get(Scheduled::failure()) {
                Ok(words) => return Err(Failure::run(String::from_utf8_lossy(&words).trim())),
                Err(_) => format!("the command ended with {code}"),
            }
        }
        Status::Code(127) => {
            "the command ended with 127: a program that it runs is not there; take \
                              it along (--with PROGRAM)"
                .to_string()
        }
        Status::Code(code) => format!("the command ended with {code}"),
        Status::Signal(signal) => format!("the command was ended by signal {signal}"),
    };
    let said = output.text() + &output.error_text();
    Err(Failure::run(if said.trim().is_empty() {
        format!("{how}, without a word")
    } else {
        format!("{how}; the end of its output is:\n{}", tail(&said))
    }))
}

/// MiB of memory that the host could still give; a large number where it does not tell.
fn available_mib() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let mut lines = text.lines();
    let kib = lines.find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = kib.and_then(|kib| kib.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib >> 10)
}

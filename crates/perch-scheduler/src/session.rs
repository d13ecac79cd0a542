// SPDX-License-Identifier: GPL-2.0-or-later
//! A session of `perch run`: it loads the scheduler, watches it and unloads it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use perch_machine::{Machine, MachineError};
use perch_policy::Topology;

use crate::arena::{Plan, check_groups, check_processes};
use crate::described;
use crate::error::SchedulerError;
use crate::exit::Ended;
use crate::kernel::{Kernel, UnableError};
use crate::program::Program;
use crate::settings::{Settings, SettingsError};
use crate::signals::Signals;
use crate::stats::{About, Report, Server, Source};

/// How often the session looks whether the kernel has ended the scheduler.
const GLANCE: Duration = Duration::from_millis(100);

/// The settings of a session.
#[derive(Clone, Debug)]
pub struct Options {
    /// The scheduler's configuration.
    pub settings: Settings,
    /// The description of the machine that replaces the one of its /sys; [`run`] refuses a
    /// description with other CPUs, cores or nodes.
    pub machine: Option<Machine>,
    /// The time between two [`News::Interval`]; none for no such news.
    pub interval: Option<Duration>,
    /// Where to serve statistics; see [`crate::stats::SOCKET`].
    pub socket: PathBuf,
    /// A file for all that libbpf and the verifier say.
    pub log: Option<PathBuf>,
}

/// The events of a session, for the person who watches it.
#[derive(Clone, Debug)]
pub enum News {
    /// A note to the person, in a line.
    Note(String),
    /// The scheduler is loaded; with the machine, kernel and settings.
    Attached(About),
    /// The statistics, once in an interval.
    Interval(Box<Report>),
}

/// Loads the scheduler and keeps it until SIGINT, SIGTERM or SIGHUP; the statistics at the end.
/// When the kernel asks for it (a CPU went offline or came online), this function loads the
/// scheduler again for the machine as it is then.
///
/// # Errors
/// Any [`SchedulerError`], with the final statistics too where it has run. Whatever happens, the
/// kernel is back on its own scheduler.
pub fn run(
    options: &Options,
    tell: &mut dyn FnMut(News),
) -> Result<Report, (SchedulerError, Option<Box<Report>>)> {
    let signals = Signals::block();
    let kernel = Kernel::new("/".as_ref());
    let source = Source::default();
    let early = |error| (error, None);
    kernel.check().map_err(|error| early(error.into()))?;

    let mut machine = None;
    let mut server = None;
    let mut restarted = 0;
    loop {
        let round = Round {
            options,
            kernel: &kernel,
            signals: &signals,
            source: &source,
        };
        let end = round
            .load(&mut machine, tell)
            .and_then(|loaded| round.watch(loaded, &mut server, tell));
        let report = || Some(Box::new(source.report())).filter(|report| report.uptime_ns > 0);
        match end {
            Ok(None) => return Ok(source.report()),
            Ok(Some(ended)) | Err(SchedulerError::Ended(ended)) if ended.wants_restart() => {
                tell(News::Note(why_again(&ended)));
                restarted += 1;
                source.restarted(restarted);
                // A CPU takes some time to go or come; wait, so as not to reload in a tight loop.
                if signals.wait(GLANCE) {
                    return Ok(source.report());
                }
            }
            Ok(Some(ended)) => return Err((SchedulerError::Ended(ended), report())),
            Err(error) => return Err((error, report())),
        }
    }
}

fn why_again(ended: &Ended) -> String {
    let why = match (ended.is_hotplug(), ended.message.as_str()) {
        (true, "") => "a CPU went or came".to_string(),
        (true, message) => format!("a CPU went or came ({message})"),
        (false, _) => format!("the kernel asks for it ({})", ended.reason),
    };
    format!("{why}: loading again")
}

/// One load of the program, with the state that all loads of a session share.
struct Round<'a> {
    options: &'a Options,
    kernel: &'a Kernel,
    signals: &'a Signals,
    source: &'a Source,
}

struct Loaded {
    program: Program,
    plan: Plan,
    about: About,
}

impl Round<'_> {
    fn load(
        &self,
        last: &mut Option<Machine>,
        tell: &mut dyn FnMut(News),
    ) -> Result<Loaded, SchedulerError> {
        // This comes before the look at the machine, so that a later change is noticed.
        let seq = self.kernel.hotplug_seq();
        let machine = self.machine(last.take(), tell)?;
        let topology = Topology::new(&machine);
        let settings = &self.options.settings;
        let (modes, mut notes) = settings.modes_for(&topology);
        notes.extend(settings.without_effect(&topology, modes));
        if self.source.is_new() {
            notes.into_iter().for_each(|note| tell(News::Note(note)));
        }
        let tuning = settings.tuning();
        let possible = self.kernel.possible().unwrap_or(0);
        let possible = possible.max(topology.nr_cpus());
        check_processes(&topology, modes, &tuning)?;
        check_groups(&tuning, possible)?;
        let plan = Plan::new(
            &machine,
            &topology,
            possible,
            modes,
            &tuning,
            settings.bands(),
        );
        let log = self.options.log.as_deref();
        let program = Program::load(self.kernel, &plan, seq, log)?;
        let mut about = About::new(&machine, self.kernel.version(), modes);
        about.band = settings.band_in_words();
        if let Some(online) = self.kernel.online() {
            about.cpus = about.cpus.min(online.len() as u64);
        }
        *last = Some(machine);
        Ok(Loaded {
            program,
            plan,
            about,
        })
    }

    /// The machine as it is now, or as it is described.
    fn machine(
        &self,
        last: Option<Machine>,
        tell: &mut dyn FnMut(News),
    ) -> Result<Machine, SchedulerError> {
        let found = perch_machine::detect("/".as_ref());
        match (&self.options.machine, found) {
            (None, Ok(found)) => Ok(found),
            // The description agreed at the first load; since then a CPU went offline.
            (Some(described), Ok(found))
                if last.is_some() && found.cpus.len() < described.cpus.len() =>
            {
                tell(News::Note(
                    "a CPU is offline: its place on the machine is kept".to_string(),
                ));
                Ok(described.clone())
            }
            (Some(described), Ok(found)) => match described::check(described, &found) {
                Ok(()) => Ok(described.clone()),
                Err(source) => Err(SchedulerError::Settings(SettingsError::OtherMachine {
                    name: described.name.clone(),
                    source,
                })),
            },
            (_, Err(error)) => self.without_holes(last, error, tell),
        }
    }

    /// A CPU in the middle that goes offline leaves a hole in the numbering, which a machine
    /// cannot have; the machine as it was before it went still holds every CPU that is online,
    /// and to the scheduler the missing one is never idle.
    fn without_holes(
        &self,
        last: Option<Machine>,
        error: MachineError,
        tell: &mut dyn FnMut(News),
    ) -> Result<Machine, SchedulerError> {
        let online = self.kernel.online();
        let highest = online.and_then(|cpus| cpus.last().map(|&cpu| cpu as usize));
        match (last, highest) {
            (Some(machine), Some(highest)) if highest < machine.cpus.len() => {
                tell(News::Note(
                    "a CPU in the middle is offline: its place on the machine is kept".to_string(),
                ));
                Ok(machine)
            }
            _ => Err(UnableError::Machine(error).into()),
        }
    }

    /// Watches until a signal comes (returns none) or until the kernel ends the scheduler.
    fn watch(
        &self,
        mut loaded: Loaded,
        server: &mut Option<Server>,
        tell: &mut dyn FnMut(News),
    ) -> Result<Option<Ended>, SchedulerError> {
        // SAFETY: retired below, before the program goes.
        let counters = unsafe { loaded.program.counters(&loaded.plan) };
        self.source.open(counters, loaded.about.clone());
        if server.is_none() {
            match Server::start(&self.options.socket, self.source.clone()) {
                Ok(started) => *server = Some(started),
                Err(error) => tell(News::Note(format!(
                    "no statistics for others: {}: {error}",
                    self.options.socket.display()
                ))),
            }
        }
        tell(News::Attached(loaded.about.clone()));
        let stopped = self.wait(&loaded.program, tell);
        let ended = loaded.program.unload();
        self.source.retire();
        // A signal and an ejection may coincide: the caller must then learn of the ejection.
        Ok(match ended {
            Some(ended) if stopped && ended.is_plain_unload() => None,
            None if stopped => None,
            other => other,
        })
    }

    /// True if a signal came.
    fn wait(&self, program: &Program, tell: &mut dyn FnMut(News)) -> bool {
        let mut next = self
            .options
            .interval
            .map(|interval| Instant::now() + interval);
        loop {
            let due = next.map_or(GLANCE, |next| {
                next.saturating_duration_since(Instant::now())
            });
            if self.signals.wait(due.min(GLANCE)) {
                return true;
            }
            if program.ended().is_some() {
                return false;
            }
            if let (Some(at), Some(interval)) = (next, self.options.interval) {
                if Instant::now() >= at {
                    tell(News::Interval(Box::new(self.source.report())));
                    next = Some(at + interval);
                }
            }
        }
    }
}

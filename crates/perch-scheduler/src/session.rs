// SPDX-License-Identifier: GPL-2.0-or-later
//! A session of `perch run`: it loads the scheduler, watches it and unloads it.

mod ground;
mod members;
mod pulse;

use std::fs::File;
use std::mem;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use perch_machine::Machine;

use crate::counters::Counters;
use crate::error::SchedulerError;
use crate::exit::Ended;
use crate::kernel::{Kernel, UnableError};
use crate::program::Program;
use crate::rights;
use crate::service::Service;
use crate::signals::{Request, Signals};
use crate::stats::{About, Report, Server, Source};
use crate::storage::Storage;
use crate::tree::Tree;
use ground::{Ground, Planned};
use members::{Calls, Found, Members};
use perch_plan::settings::{Configuration, Settings};
use pulse::Pulse;

/// How often the session looks whether the kernel has ended the scheduler.
const GLANCE: Duration = Duration::from_millis(100);

/// How often the session looks which CPUs are isolated, and which tasks are its own, where not all are: a
/// task that joins waits that long for perch, and has the kernel's scheduler meanwhile.
const LOOK: Duration = Duration::from_secs(1);

/// The most looks at a machine whose CPUs go or come, a [`GLANCE`] apart: five seconds in all, many times
/// what a CPU takes.
const LOOKS_WHILE_CPUS_CHANGE: u32 = 50;

/// The settings of a session.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the scheduler's configuration stands.
    pub configuration: Configuration,
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
    /// A request that was refused while the scheduler goes on, in a line.
    Refused(String),
    /// The scheduler is loaded; with the machine, kernel and settings.
    Attached(About),
    /// The statistics, once in an interval.
    Interval(Box<Report>),
}

/// Reads the settings and looks at the kernel and the machine as [`run`] does, and loads nothing.
/// Returns what would be loaded, and the notes about it.
///
/// # Errors
/// The [`SchedulerError`] with which [`run`] would end before it loads; but a perch that schedules
/// already is none, because a service checks a new configuration before it reloads.
pub fn check(options: &Options) -> Result<(About, Vec<String>), SchedulerError> {
    let settings = options.configuration.read()?;
    let kernel = Kernel::new("/".as_ref());
    kernel.check_reload()?;
    let ground = Ground { kernel: &kernel, described: options.machine.as_ref() };
    let mut notes = Vec::new();
    let planned = ground.plan(&settings, &mut |news| {
        if let News::Note(note) = news {
            notes.push(note);
        }
    })?;
    notes.extend(planned.notes);
    Ok((planned.about, notes))
}

/// Loads the scheduler and keeps it until SIGINT or SIGTERM; the statistics at the end. When the
/// kernel asks for it (a new CPU came, or up to Linux 7.0 any went or came), this function loads the
/// scheduler again for the machine as it is then. On SIGHUP it reads the configuration again, and if that has changed and
/// makes sense, loads the scheduler with it. Once it has looked around, it gives up the process's
/// rights to all else than loading.
///
/// # Errors
/// Any [`SchedulerError`], with the final statistics too where it has run. Whatever happens, the
/// kernel is back on its own scheduler.
pub fn run(
    options: &Options,
    tell: &mut dyn FnMut(News),
) -> Result<Report, (SchedulerError, Option<Box<Report>>)> {
    let early = |error: SchedulerError| (error, None);
    let signals = Signals::block();
    let kernel = Kernel::new("/".as_ref());
    let settings = options.configuration.read().map_err(|error| early(error.into()))?;
    kernel.check().map_err(|error| early(error.into()))?;
    let log = options.log.as_ref().map(|path| {
        let write = |source| UnableError::Write { path: path.clone(), source };
        File::create(path).map_err(write)
    });
    let log = log.transpose().map_err(|error| early(error.into()))?;
    let server = match Server::bind(&options.socket) {
        Ok(server) => Some(server),
        Err(error) => {
            let socket = options.socket.display();
            tell(News::Note(format!("no statistics for others: {socket}: {error}")));
            None
        }
    };
    let policies = !settings.partial().is_empty();
    rights::give_up(policies);
    let mut session = Session {
        options,
        ground: Ground { kernel: &kernel, described: options.machine.as_ref() },
        signals: &signals,
        source: Source::default(),
        service: Service::new(),
        log,
        server,
        settings,
        storage: Storage::default(),
        isolated: Vec::new(),
        hung_up: false,
        members: Members::new(Tree::new("/".as_ref()), Calls),
        policies,
    };
    let end = session.keep_loaded(tell);
    session.service.stopping();
    session.members.release();
    let report = session.source.report();
    match end {
        Ok(()) => Ok(report),
        Err(error) => Err((error, Some(Box::new(report)).filter(|it| it.uptime_ns > 0))),
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

/// Gives the memory that loading took back to the system: watching, for months maybe, needs little.
fn trim() {
    // SAFETY: it may be called at any time.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0)
    };
}

/// The state that all loads of a session share.
struct Session<'a> {
    options: &'a Options,
    ground: Ground<'a>,
    signals: &'a Signals,
    source: Source,
    service: Service,
    log: Option<File>,
    server: Option<Server>,
    settings: Settings,
    /// The maps that outlive a program.
    storage: Storage,
    /// The CPUs that were isolated when the scheduler was loaded last.
    isolated: Vec<u32>,
    /// SIGHUP came while no scheduler was loaded.
    hung_up: bool,
    /// The tasks that are perch's, where not all are.
    members: Members,
    /// perch has kept the right to change tasks' policies.
    policies: bool,
}

struct Loaded {
    program: Program,
    /// Its counters, which must be retired before it goes.
    counters: Counters,
    about: About,
}

/// Why a loaded scheduler is watched no longer.
enum End {
    /// Somebody asks to stop.
    Stopped,
    /// Somebody asks for other settings, or the CPUs that take part are others.
    Changed(Settings),
    /// The kernel let it go.
    Ended(Ended),
    /// Its timer has not come for so long.
    Still(Duration),
}

impl Session<'_> {
    /// Loads the scheduler as often as it takes, until somebody asks to stop.
    fn keep_loaded(&mut self, tell: &mut dyn FnMut(News)) -> Result<(), SchedulerError> {
        let mut restarted = 0;
        // The settings before the last change, until a program has them.
        let mut before: Option<Settings> = None;
        loop {
            let end = match self.load(tell) {
                Ok(Some(loaded)) => {
                    before = None;
                    self.watch(loaded, tell)
                }
                Ok(None) => End::Stopped,
                Err(SchedulerError::Ended(ended)) => End::Ended(ended),
                Err(error) => match before.take() {
                    Some(settings) => {
                        tell(News::Refused(format!("{error}; loading with the old settings")));
                        self.settings = settings;
                        continue;
                    }
                    None => return Err(error),
                },
            };
            match end {
                End::Stopped => return Ok(()),
                End::Changed(settings) => before = Some(mem::replace(&mut self.settings, settings)),
                End::Ended(ended) if ended.wants_restart() => {
                    tell(News::Note(why_again(&ended)));
                    // A CPU takes some time to go or come; wait, so as not to reload in a tight
                    // loop.
                    if self.rest() {
                        return Ok(());
                    }
                }
                End::Ended(ended) => return Err(SchedulerError::Ended(ended)),
                End::Still(time) => return Err(SchedulerError::Still(time)),
            }
            restarted += 1;
            self.source.restarted(restarted);
        }
    }

    /// Waits for a [`GLANCE`] while no scheduler is loaded; true if somebody asks to stop.
    fn rest(&mut self) -> bool {
        let request = self.signals.wait(GLANCE);
        self.hung_up |= matches!(request, Some(Request::HangUp));
        matches!(request, Some(Request::Stop))
    }

    /// Plans for the machine once no CPU goes or comes, and for what it is by then if that does not end.
    /// Returns also how often CPUs had gone or come before the look at it, for the kernel to notice a later
    /// change. None: somebody asks to stop.
    fn plan(
        &mut self,
        tell: &mut dyn FnMut(News),
    ) -> Result<Option<(Option<u64>, Planned)>, SchedulerError> {
        let kernel = self.ground.kernel;
        let mut looks = 1;
        loop {
            let seq = kernel.hotplug_seq();
            let mut told = Vec::new();
            let planned = self.ground.plan(&self.settings, &mut |news| told.push(news));
            let steady = !kernel.cpus_change() && kernel.hotplug_seq() == seq;
            if steady || looks == LOOKS_WHILE_CPUS_CHANGE {
                told.into_iter().for_each(tell);
                return Ok(Some((seq, planned?)));
            }
            looks += 1;
            if self.rest() {
                return Ok(None);
            }
        }
    }

    /// Loads the scheduler; none if somebody asks to stop before.
    fn load(&mut self, tell: &mut dyn FnMut(News)) -> Result<Option<Loaded>, SchedulerError> {
        let Some((seq, planned)) = self.plan(tell)? else {
            return Ok(None);
        };
        let Planned { plan, about, rules, notes, isolated } = planned;
        if self.source.is_new() {
            notes.into_iter().for_each(|note| tell(News::Note(note)));
        }
        let log = self.log.as_mut().zip(self.options.log.as_deref());
        let program = Program::load(self.ground.kernel, &plan, seq, &mut self.storage, log)?;
        self.isolated = isolated;
        self.members.follow(rules);
        // SAFETY: whoever watches retires them before the program goes.
        let counters = unsafe { program.counters(&plan) };
        drop(plan);
        trim();
        Ok(Some(Loaded { program, counters, about }))
    }

    /// Watches until a signal comes or until the kernel ends the scheduler.
    fn watch(&mut self, loaded: Loaded, tell: &mut dyn FnMut(News)) -> End {
        let Loaded { mut program, counters, about } = loaded;
        self.source.open(counters, about.clone());
        if let Some(server) = &mut self.server {
            if let Err(error) = server.answer(&self.source) {
                tell(News::Note(format!("no statistics for others: {error}")));
            }
        }
        self.look(tell);
        self.service.ready(&format!("scheduling {} CPUs: {}", about.cpus, about.modes));
        tell(News::Attached(about));
        let asked = self.wait(&program, tell);
        if let Some(End::Changed(_)) = asked {
            self.service.reloading();
        }
        let ended = program.unload();
        self.source.retire();
        // A signal and an ejection may coincide: the caller must then learn of the ejection.
        match (asked, ended) {
            (Some(asked), Some(ended)) if ended.is_plain_unload() => asked,
            (_, Some(ended)) => End::Ended(ended),
            (asked, None) => asked.unwrap_or(End::Stopped),
        }
    }

    /// Looks which tasks are perch's, and counts them.
    fn look(&mut self, tell: &mut dyn FnMut(News)) {
        let Found { members, refused, trouble } = self.members.look();
        self.source.members(members, refused);
        if let Some(trouble) = trouble {
            tell(News::Note(trouble));
        }
    }

    /// Waits for a request, or for the kernel to end the program, which is none.
    fn wait(&mut self, program: &Program, tell: &mut dyn FnMut(News)) -> Option<End> {
        let mut look_at = Instant::now() + LOOK;
        let mut pulse = Pulse::new(program.turns(), Instant::now());
        let mut next = self.options.interval.map(|interval| Instant::now() + interval);
        loop {
            let due = next.map_or(GLANCE, |next| next.saturating_duration_since(Instant::now()));
            let late = mem::take(&mut self.hung_up).then_some(Request::HangUp);
            match late.or_else(|| self.signals.wait(due.min(GLANCE))) {
                Some(Request::Stop) => return Some(End::Stopped),
                Some(Request::HangUp) => {
                    if let Some(settings) = self.changed(tell) {
                        return Some(End::Changed(settings));
                    }
                }
                None => {}
            }
            if program.ended().is_some() {
                return None;
            }
            if let Some(time) = pulse.stands_still(program.turns(), Instant::now()) {
                return Some(End::Still(time));
            }
            self.service.alive();
            if Instant::now() >= look_at {
                self.look(tell);
                // The kernel tells a scheduler of CPUs that go or come, and of no others.
                if self.ground.isolated() != self.isolated {
                    tell(News::Note(
                        "other CPUs are isolated than before: loading again".to_string(),
                    ));
                    return Some(End::Changed(self.settings.clone()));
                }
                look_at = Instant::now() + LOOK;
            }
            if let (Some(at), Some(interval)) = (next, self.options.interval) {
                if Instant::now() >= at {
                    tell(News::Interval(Box::new(self.source.report())));
                    next = Some(at + interval);
                }
            }
        }
    }

    /// Reads the settings again. None if they are as they were, or if they would not do; the
    /// scheduler then goes on.
    fn changed(&self, tell: &mut dyn FnMut(News)) -> Option<Settings> {
        let Some(file) = &self.options.configuration.file else {
            tell(News::Note(
                "SIGHUP: nothing to read again without --config; SIGTERM unloads".to_string(),
            ));
            return None;
        };
        let file = file.display();
        let read = self.options.configuration.read();
        if read.as_ref().is_ok_and(|settings| *settings == self.settings) {
            tell(News::Note(format!("{file} has not changed")));
            return None;
        }
        let planned = |settings: Settings| {
            if !settings.partial().is_empty() && !self.policies {
                return Err(UnableError::NoPolicies.into());
            }
            let planned = self.ground.plan(&settings, &mut |_| ())?;
            Ok((settings, planned.notes))
        };
        match read.map_err(SchedulerError::from).and_then(planned) {
            Err(error) => {
                tell(News::Refused(format!(
                    "{error}; perch goes on with the settings that it has"
                )));
                None
            }
            Ok((settings, notes)) => {
                notes.into_iter().for_each(|note| tell(News::Note(note)));
                tell(News::Note(format!("{file} has changed: loading again")));
                Some(settings)
            }
        }
    }
}

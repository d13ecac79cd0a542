// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch top`: a screen of what a loaded scheduler is doing, until `q`.

mod groups;
mod screen;
mod state;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use perch_scheduler::stats::{Client, Report, SOCKET, StatisticsError};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::cgroup;
use crate::output::Failure;
use crate::stats::interval;
use groups::Groups;
use state::State;

/// The arguments of `perch top`.
#[derive(Args)]
pub struct Arguments {
    /// How often to ask the scheduler; rates are those of the time between
    #[arg(long, value_name = "TIME", value_parser = interval, default_value = "1s")]
    every: Duration,
    /// Where the scheduler gives its statistics
    #[arg(long, value_name = "SOCKET", default_value = SOCKET)]
    socket: PathBuf,
}

/// The longest time for which a signal is not noticed.
const GLANCE: Duration = Duration::from_millis(100);

/// Carries out `perch top`.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        return Err(Failure::input(
            "perch top needs a terminal on its standard output: perch stats --interval 1s writes \
             lines to a file or a pipe",
        ));
    }
    // Without a scheduler there is nothing to show, and the terminal stays as it is.
    let mut source = Source::connect(arguments.socket)?;
    let first = source.ask()?;
    let ended = signals().map_err(|error| Failure::run(format!("cannot wait: {error}")))?;
    let terminal = ratatui::try_init();
    let shown = match terminal {
        Ok(terminal) => show(terminal, &mut source, first, arguments.every, &ended),
        Err(error) => Err(error),
    };
    // Whatever happened; it writes of its own failures to the terminal that it cannot set.
    ratatui::restore();
    shown.map_err(|error| Failure::run(format!("cannot use the terminal: {error}")))
}

/// Becomes true when somebody asks the process to end. Ctrl-C is a key to a terminal in raw mode.
fn signals() -> io::Result<Arc<AtomicBool>> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&ended))?;
    }
    Ok(ended)
}

/// Draws until somebody asks to end.
fn show(
    mut terminal: DefaultTerminal,
    source: &mut Source,
    first: Report,
    every: Duration,
    ended: &AtomicBool,
) -> io::Result<()> {
    let mut state = State::new(first);
    let began = Instant::now();
    let mut groups = Groups::new(cgroup::ROOT.as_ref());
    groups.look(began.elapsed());
    let mut next = Instant::now() + every;
    terminal.draw(|frame| screen::draw(frame, &mut state))?;
    while !ended.load(Ordering::Relaxed) {
        let left = next.saturating_duration_since(Instant::now());
        let mut changed = false;
        if event::poll(left.min(GLANCE))? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    if state.press(key) {
                        return Ok(());
                    }
                    changed = true;
                }
                Event::Resize(..) => changed = true,
                _ => {}
            }
        }
        if Instant::now() >= next {
            next = Instant::now() + every;
            match source.ask() {
                Ok(report) => state.take(report, groups.look(began.elapsed())),
                Err(error) => state.lose(&error.to_string()),
            }
            changed = true;
        }
        if changed {
            terminal.draw(|frame| screen::draw(frame, &mut state))?;
        }
    }
    Ok(())
}

/// A scheduler's socket, which outlives the scheduler.
struct Source {
    socket: PathBuf,
    client: Option<Client>,
}

impl Source {
    fn connect(socket: PathBuf) -> Result<Source, StatisticsError> {
        let client = Some(Client::connect(&socket)?);
        Ok(Source { socket, client })
    }

    /// The statistics now; of another scheduler where the last one has gone.
    fn ask(&mut self) -> Result<Report, StatisticsError> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => Client::connect(&self.socket)?,
        };
        let report = client.report()?;
        self.client = Some(client);
        Ok(report)
    }
}

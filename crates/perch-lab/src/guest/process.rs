// SPDX-License-Identifier: GPL-2.0-or-later
//! Programs that run in a guest.

use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

pub use rustix::process::Signal;

use super::command::{Command, Output, Status};
use super::link::{Silence, next};
use super::shared::Shared;
use crate::agent::frame::{Event, Request};
use crate::error::{Error, Result};

/// A program that runs in a guest. Dropping the value kills it with its process group.
pub struct Process {
    shared: Arc<Shared>,
    id: u32,
    events: Receiver<Event>,
    command: Command,
    began: Instant,
    pid: Option<u32>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    status: Option<Status>,
}

impl Process {
    /// Starts a program; an error when the guest has none of that name.
    pub(super) fn start(shared: &Arc<Shared>, command: &Command) -> Result<Process> {
        let (id, events) = shared.link.listen();
        let mut process = Process::adopt(shared, id, events, command);
        shared.ask(&Request::Start(id, command.start.clone()))?;
        let deadline = process.deadline(command.timeout);
        while process.pid.is_none() {
            process.step(deadline)?;
        }
        Ok(process)
    }

    /// The program whose events carry the number `id`.
    pub(super) fn adopt(
        shared: &Arc<Shared>,
        id: u32,
        events: Receiver<Event>,
        command: &Command,
    ) -> Process {
        Process {
            shared: Arc::clone(shared),
            id,
            events,
            command: command.clone(),
            began: Instant::now(),
            pid: None,
            stdout: Vec::new(),
            stderr: Vec::new(),
            status: None,
        }
    }

    /// Its process id in the guest, which is also the id of its process group.
    pub fn pid(&self) -> u32 {
        self.pid.unwrap_or(0)
    }

    /// Sends a signal to it and everything that it started, as Ctrl-C in a terminal does. Nothing
    /// happens when it has ended.
    ///
    /// # Errors
    /// [`Error::Guest`] when the guest is gone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.shared.ask(&Request::Signal(self.id, signal.as_raw() as u32))
    }

    /// Returns whether the program still runs, by the events that have reached the host.
    pub fn is_running(&mut self) -> bool {
        self.hear();
        self.status.is_none()
    }

    /// The bytes that have come from its standard output so far.
    pub fn stdout(&mut self) -> &[u8] {
        self.hear();
        &self.stdout
    }

    /// The bytes that have come from its standard error so far.
    pub fn stderr(&mut self) -> &[u8] {
        self.hear();
        &self.stderr
    }

    /// Waits until it has written `words` to its standard output or standard error.
    ///
    /// # Errors
    /// [`Error::Command`] with what it wrote instead when it ended without them or took longer
    /// than `limit`; [`Error::Guest`] when the guest is gone.
    pub fn wait_for(&mut self, words: &str, limit: Duration) -> Result<()> {
        let deadline = Some(Instant::now() + limit);
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(words);
        while !said(&self.stdout) && !said(&self.stderr) {
            if let Some(status) = self.status {
                return Err(self.failed(&format!("{} without a word of `{words}`", told(status))));
            }
            match next(&self.events, deadline) {
                Ok(event) => self.take(event)?,
                Err(Silence::Gone) => return Err(self.shared.gone()),
                Err(Silence::Late) => {
                    let seconds = limit.as_secs_f64();
                    let words = format!("did not say `{words}` within {seconds:.0} s");
                    return Err(self.failed(&words));
                }
            }
        }
        Ok(())
    }

    /// Waits for its end, no longer than its command's timeout from its start.
    ///
    /// # Errors
    /// [`Error::Command`] when it took longer, upon which it is killed; [`Error::Guest`] when the
    /// guest is gone.
    pub fn wait(mut self) -> Result<Output> {
        let deadline = self.deadline(self.command.timeout);
        let status = self.finish(deadline)?;
        Ok(Output {
            status,
            stdout: std::mem::take(&mut self.stdout),
            stderr: std::mem::take(&mut self.stderr),
        })
    }

    /// As [`Process::wait`], and writes the program's output to `out` and `err` as it comes.
    ///
    /// # Errors
    /// As [`Process::wait`]. A writer that fails (a closed pipe) is not written to again.
    pub fn stream(mut self, out: &mut dyn Write, err: &mut dyn Write) -> Result<Status> {
        let deadline = self.deadline(self.command.timeout);
        let (mut out, mut err) = (Some(out), Some(err));
        loop {
            pass(&mut out, &mut self.stdout);
            pass(&mut err, &mut self.stderr);
            match self.status {
                Some(status) => return Ok(status),
                None => self.step(deadline)?,
            }
        }
    }

    fn deadline(&self, limit: Duration) -> Option<Instant> {
        self.began.checked_add(limit)
    }

    fn finish(&mut self, deadline: Option<Instant>) -> Result<Status> {
        loop {
            match self.status {
                Some(status) => return Ok(status),
                None => self.step(deadline)?,
            }
        }
    }

    /// Takes the events that have come already.
    fn hear(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            if self.take(event).is_err() {
                return;
            }
        }
    }

    /// Takes the next event.
    fn step(&mut self, deadline: Option<Instant>) -> Result<()> {
        match next(&self.events, deadline) {
            Ok(event) => self.take(event),
            Err(Silence::Gone) => Err(self.shared.gone()),
            Err(Silence::Late) => {
                let seconds = self.command.timeout.as_secs_f64();
                Err(self.failed(&format!("did not end within {seconds:.0} s and was killed")))
            }
        }
    }

    fn take(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Started(_, pid) => self.pid = Some(pid),
            Event::Stdout(_, bytes) => self.stdout.extend(bytes),
            Event::Stderr(_, bytes) => self.stderr.extend(bytes),
            Event::Ended(_, status) => self.status = Some(status),
            Event::Failed(_, words) => {
                // No further event will come.
                self.status.get_or_insert(Status::Code(127));
                return Err(Error::Command(format!("in the guest: {words}")));
            }
            Event::Ready(_) | Event::File(..) | Event::Done(_) => {}
        }
        Ok(())
    }

    /// An error with the last lines of the program's output.
    fn failed(&self, what: &str) -> Error {
        let mut message = format!("`{}` {what}", self.command.words());
        for (name, bytes) in [("output", &self.stdout), ("error", &self.stderr)] {
            let text = String::from_utf8_lossy(bytes);
            let lines: Vec<&str> = text.lines().collect();
            let last = &lines[lines.len().saturating_sub(10)..];
            if !last.is_empty() {
                message += &format!("; the end of its standard {name}:\n{}", last.join("\n"));
            }
        }
        Error::Command(message)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.status.is_none() {
            let _ = self.signal(Signal::KILL);
        }
        self.shared.link.forget(self.id);
    }
}

/// Writes `bytes` to `to` and empties them; drops a writer that fails.
fn pass(to: &mut Option<&mut dyn Write>, bytes: &mut Vec<u8>) {
    if let Some(writer) = to.as_mut().filter(|_| !bytes.is_empty()) {
        if writer.write_all(bytes).and_then(|()| writer.flush()).is_err() {
            *to = None;
        }
    }
    bytes.clear();
}

/// The end of a program, in words for a sentence.
fn told(status: Status) -> String {
    match status {
        Status::Code(code) => format!("ended with {code}"),
        Status::Signal(signal) => format!("was ended by signal {signal}"),
    }
}

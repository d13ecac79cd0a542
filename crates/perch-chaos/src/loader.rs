// SPDX-License-Identifier: GPL-2.0-or-later
//! The scheduler under test: started, killed, told to read its file again, and looked after.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::calls;

/// The folder of what a round writes.
pub(crate) const FOLDER: &str = "/run/chaos";

/// The time that the scheduler may take to load, to unload and to end. Loading takes three seconds of a
/// guest whose clock counts instructions, and beside hogs on CPUs that take turns ten times as long.
const PATIENCE_NS: u64 = 600_000_000_000;

/// The scheduler that is loaded, or the kernel's own.
pub(crate) struct Loader {
    arguments: Option<Vec<String>>,
    running: Option<Running>,
    loads: u64,
}

/// A `perch run`.
struct Running {
    child: Child,
    said: PathBuf,
}

impl Running {
    fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap_or_default()
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Its end, with its last words, for a report.
    fn end(&self, status: ExitStatus) -> String {
        format!("perch ended with {}: {}", in_words(status), self.last())
    }

    fn last(&self) -> String {
        let said = self.said();
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(12)..].join(" | ")
    }

    /// Waits until `is_so`.
    fn until(
        &mut self,
        what: &str,
        mut is_so: impl FnMut(&mut Running) -> Result<bool, String>,
    ) -> Result<(), String> {
        let mut fault = None;
        let came = calls::comes(PATIENCE_NS, || match is_so(self) {
            Ok(is_so) => is_so,
            Err(words) => {
                fault = Some(words);
                true
            }
        });
        match fault {
            Some(fault) => Err(fault),
            None if came => Ok(()),
            None => {
                let (seconds, last) = (PATIENCE_NS / 1_000_000_000, self.last());
                Err(format!("not within {seconds} s: {what}; it said: {last}"))
            }
        }
    }
}

fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "no status".to_string(),
    }
}

/// What the kernel says of the scheduler that is loaded: a state, and a name.
fn state() -> (String, String) {
    let read = |name: &str| {
        let text = fs::read_to_string(format!("/sys/kernel/sched_ext/{name}"));
        text.unwrap_or_default().trim().to_string()
    };
    (read("state"), read("root/ops"))
}

impl Loader {
    /// The loader of `perch run` with these arguments; without, nothing is ever loaded.
    pub(crate) fn new(arguments: Option<Vec<String>>) -> Loader {
        Loader { arguments, running: None, loads: 0 }
    }

    /// The number of times that it was started.
    pub(crate) fn loads(&self) -> u64 {
        self.loads
    }

    /// Is there something to load?
    pub(crate) fn is_ours(&self) -> bool {
        self.arguments.is_some()
    }

    fn launch(&mut self, more: &[&str]) -> Result<Running, String> {
        let arguments = self.arguments.as_ref().expect("there is a scheduler");
        let said = PathBuf::from(format!("{FOLDER}/said.{}", self.loads));
        let failed = |error: std::io::Error| format!("perch cannot be started: {error}");
        self.loads += 1;
        let file = File::create(&said).map_err(failed)?;
        let mut command = Command::new("/proc/self/exe");
        command.args(["run", "--config"]).arg(config());
        command.args(arguments).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(file).spawn().map_err(failed)?;
        // As its unit does. It fails only when the process is gone, which is told soon.
        let _ = fs::write(format!("/proc/{}/oom_score_adj", child.id()), "-1000");
        Ok(Running { child, said })
    }

    /// Starts it, and waits until it is loaded.
    pub(crate) fn start(&mut self) -> Result<(), String> {
        if !self.is_ours() || self.running.is_some() {
            return Ok(());
        }
        let mut running = self.launch(&[])?;
        let loaded = running.until("perch is loaded", |perch| match perch.ended() {
            Some(status) => Err(perch.end(status)),
            None => Ok(perch.said().contains("Ctrl-C unloads")),
        });
        self.running = Some(running);
        loaded
    }

    /// Ends it by a signal, and waits until the kernel has its own scheduler. By SIGINT it must say that
    /// all went well.
    pub(crate) fn stop(&mut self, signal: i32) -> Result<(), String> {
        self.check()?;
        let Some(mut running) = self.running.take() else {
            return Ok(());
        };
        calls::signal(running.child.id() as i32, signal);
        let mut status = None;
        running.until("perch ends at a signal", |perch| {
            status = perch.ended();
            Ok(status.is_some())
        })?;
        running.until("the kernel has its own scheduler", |_| Ok(state().0 == "disabled"))?;
        match status {
            Some(status) if signal == libc::SIGINT && !status.success() => Err(running.end(status)),
            _ => Ok(()),
        }
    }

    /// Writes another file for it, or the same one, and has it read that.
    pub(crate) fn reload(&mut self, balance_ms: u64) -> Result<(), String> {
        write_config(balance_ms)?;
        if let Some(running) = &self.running {
            calls::signal(running.child.id() as i32, libc::SIGHUP);
        }
        Ok(())
    }

    /// Starts a second one, which must not take the place of the first.
    pub(crate) fn second(&mut self) -> Result<(), String> {
        if self.running.is_none() {
            return Ok(());
        }
        let mut second = self.launch(&["--socket", "/run/chaos/second"])?;
        let mut status = None;
        second.until("a second perch is refused", |perch| {
            status = perch.ended();
            Ok(status.is_some())
        })?;
        match status {
            Some(status) if status.success() => Err(format!("a second {}", second.end(status))),
            _ => self.check(),
        }
    }

    /// Is it there, as far as nobody has ended it?
    pub(crate) fn check(&mut self) -> Result<(), String> {
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        match running.ended() {
            None => Ok(()),
            Some(status) => {
                let end = running.end(status);
                self.running = None;
                Err(end)
            }
        }
    }

    /// Waits until the kernel has it, and until it answers.
    pub(crate) fn settle(&mut self) -> Result<(), String> {
        self.start()?;
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        running.until("the kernel has perch again", |perch| match perch.ended() {
            Some(status) => Err(perch.end(status)),
            None => Ok(state() == ("enabled".to_string(), "perch".to_string())),
        })?;
        running.until("perch stats answers", |_| {
            let mut command = Command::new("/proc/self/exe");
            command.arg("stats").stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            Ok(command.status().is_ok_and(|status| status.success()))
        })
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        if let Some(running) = &mut self.running {
            let _ = running.child.kill();
        }
    }
}

fn config() -> String {
    format!("{FOLDER}/perch.toml")
}

/// Writes the scheduler's file.
pub(crate) fn write_config(balance_ms: u64) -> Result<(), String> {
    let (file, next) = (config(), format!("{FOLDER}/next"));
    let written = fs::write(&next, format!("balance_ms = {balance_ms}\n"));
    // The scheduler never meets half a file.
    let written = written.and_then(|()| fs::rename(&next, &file));
    written.map_err(|error| format!("{file}: {error}"))
}

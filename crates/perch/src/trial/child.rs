// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch run` as a child of the trial. However the trial ends, the kernel kills the child, and then
//! schedules by itself again.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use perch_scheduler::Signals;
use rustix::process::{Pid, Signal, kill_process};

use super::conduct::Interruption;
use crate::output::Failure;

/// This program, also where its file was replaced meanwhile.
const PERCH: &str = "/proc/self/exe";

/// How often something is looked at while it is waited for.
const GLANCE: Duration = Duration::from_millis(20);

/// The time that perch may take to unload before it is killed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Has the command not inherit the signals that this process blocks.
pub fn unblock_signals(command: &mut Command) {
    // SAFETY: both calls write only to the set, and may be made between fork and exec.
    unsafe {
        command.pre_exec(|| {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
            Ok(())
        });
    }
}

/// Has the kernel kill `command` when this process ends in any way. The command does not inherit the
/// signals that this process blocks.
pub fn die_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    let prepare = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // This process may have ended just before that call.
        match rustix::process::getppid() == Some(parent) {
            true => Ok(()),
            false => Err(io::ErrorKind::NotConnected.into()),
        }
    };
    // SAFETY: between fork and exec only system calls are made; nothing is allocated or locked.
    unsafe {
        command.pre_exec(prepare);
    }
    unblock_signals(command);
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::run(format!("cannot start perch run: {error}"))
}

/// The last line that perch wrote to a file.
fn last_words(said: &mut File) -> String {
    let mut bytes = Vec::new();
    let _ = said.rewind().and_then(|()| said.read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines().rev();
    let last = lines.find_map(|line| line.strip_prefix("perch: "));
    // clap writes in a form of its own, whose first line says what is wrong.
    let last = last.or_else(|| text.lines().next());
    last.unwrap_or("perch run said nothing").to_string()
}

/// The notes that `perch run` with these arguments would say.
///
/// # Errors
/// As `perch run` fails, with its exit code and words.
pub fn check(arguments: &[String]) -> Result<Vec<String>, Failure> {
    let mut command = Command::new(PERCH);
    command.arg("run").args(arguments).arg("--check");
    let output = command.stdin(Stdio::null()).output().map_err(failed)?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        let lines = said.lines().filter_map(|line| line.strip_prefix("perch: "));
        let notes = lines.filter(|line| !line.starts_with("would schedule "));
        return Ok(notes.map(str::to_string).collect());
    }
    let code = output.status.code().and_then(|code| u8::try_from(code).ok());
    let message = said.trim();
    Err(Failure {
        code: code.unwrap_or(1),
        message: message.strip_prefix("perch: ").unwrap_or(message).to_string(),
    })
}

/// A perch that schedules. Dropping the value ends it.
pub struct Loaded {
    child: Child,
    /// What it writes to stderr.
    said: File,
    /// What it says that it schedules, and by which modes.
    pub scheduling: String,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Loaded {
    /// Starts `perch run` with these arguments and waits until it schedules.
    ///
    /// # Errors
    /// Where it does not come to that, with its exit code and words.
    pub fn load(arguments: &[String], signals: &Signals) -> Result<Loaded, Interruption> {
        let wrong = |error: io::Error| failed(error);
        let folder = tempfile::tempdir().map_err(wrong)?;
        let path = folder.path().join("notify");
        // perch run says when it is ready as a service does.
        let socket = UnixDatagram::bind(&path).map_err(wrong)?;
        socket.set_read_timeout(Some(GLANCE)).map_err(wrong)?;
        let said = tempfile::tempfile().map_err(wrong)?;
        let mut command = Command::new(PERCH);
        command.arg("run").args(arguments);
        command.env("NOTIFY_SOCKET", &path);
        command.env_remove("WATCHDOG_USEC").env_remove("WATCHDOG_PID");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(said.try_clone().map_err(wrong)?);
        // The terminal's Ctrl-C is for the trial, which ends its child in order.
        command.process_group(0);
        die_with_parent(&mut command);
        let mut loaded =
            Loaded { child: command.spawn().map_err(wrong)?, said, scheduling: String::new() };
        let mut message = [0; 4096];
        loop {
            if let Ok(length) = socket.recv(&mut message) {
                let text = String::from_utf8_lossy(&message[..length]);
                if text.lines().any(|line| line == "READY=1") {
                    let status = text.lines().find_map(|line| line.strip_prefix("STATUS="));
                    let status = status.unwrap_or_default();
                    let status = status.strip_prefix("scheduling ").unwrap_or(status);
                    loaded.scheduling = status.to_string();
                    return Ok(loaded);
                }
            }
            loaded.goes_on()?;
            if signals.wait(Duration::ZERO).is_some() {
                return Err(Interruption::Stopped);
            }
        }
    }

    /// Looks whether it still runs.
    ///
    /// # Errors
    /// Its exit code and words, where it has ended.
    pub fn goes_on(&mut self) -> Result<(), Failure> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.ended(status)),
            Err(error) => Err(Failure::run(error.to_string())),
        }
    }

    fn ended(&mut self, status: ExitStatus) -> Failure {
        let words = last_words(&mut self.said);
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        match code {
            Some(0) => Failure::run("perch run was ended by somebody else"),
            Some(code) => Failure { code, message: words },
            None => Failure::run(format!("perch run: {status}: {words}")),
        }
    }

    /// Unloads it.
    ///
    /// # Errors
    /// Its words, where the kernel had let it go before.
    pub fn unload(mut self) -> Result<(), Failure> {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // It was not waited for, so the id is still its own.
        if let (Ok(None), Some(id)) = (self.child.try_wait(), id) {
            let _ = kill_process(id, Signal::TERM);
        }
        let asked = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(self.ended(status)),
                // Dropping it kills it, which unloads it, too.
                Ok(None) if asked.elapsed() > PATIENCE => return Ok(()),
                Ok(None) => std::thread::sleep(GLANCE),
                Err(error) => return Err(Failure::run(error.to_string())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn last_words_of_perch_are_those_with_its_name() {
        let words = |text: &str| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            last_words(&mut file)
        };
        assert_eq!(words("perch: a note\nperch: the end\n"), "the end");
        assert_eq!(words("error: unexpected argument\n\nUsage: x\n"), "error: unexpected argument");
        assert_eq!(words(""), "perch run said nothing");
    }
}

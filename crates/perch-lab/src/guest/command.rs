// SPDX-License-Identifier: GPL-2.0-or-later
//! A program to run in a guest, and the outcome of one that ran.

use std::time::Duration;

use crate::agent::frame::Start;

pub use crate::agent::frame::Status;

/// The time that a command may take when its caller sets no other.
const PATIENCE: Duration = Duration::from_secs(3600);

/// A program to run in a guest, and how long it may take.
#[derive(Clone, Debug)]
pub struct Command {
    pub(super) start: Start,
    pub(super) timeout: Duration,
}

impl Command {
    /// The program (a path, or a name below the guest's `PATH`) and its arguments. It has the
    /// agent's environment, an empty standard input and an hour.
    pub fn new<W: Into<String>>(argv: impl IntoIterator<Item = W>) -> Command {
        Command {
            start: Start { argv: argv.into_iter().map(Into::into).collect(), ..Start::default() },
            timeout: PATIENCE,
        }
    }

    /// A script for the guest's shell, which is busybox's.
    pub fn shell(script: impl Into<String>) -> Command {
        Command::new(["sh".to_string(), "-c".to_string(), script.into()])
    }

    /// Adds a variable to its environment.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Command {
        self.start.env.push((name.into(), value.into()));
        self
    }

    /// Gives it `bytes` as its standard input, up to 15 MB; [`super::Guest::put`] takes more.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Command {
        self.start.stdin = bytes.into();
        self
    }

    /// Has the host kill it after so much of the host's time.
    pub fn timeout(mut self, timeout: Duration) -> Command {
        self.timeout = timeout;
        self
    }

    /// The command as a user would type it.
    pub(super) fn words(&self) -> String {
        self.start.argv.join(" ")
    }
}

/// The outcome of a program: its output and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The end of the program.
    pub status: Status,
    /// The bytes that it wrote to its standard output.
    pub stdout: Vec<u8>,
    /// The bytes that it wrote to its standard error.
    pub stderr: Vec<u8>,
}

impl Output {
    /// Returns whether the program ended with exit code 0.
    pub fn success(&self) -> bool {
        self.status == Status::Code(0)
    }

    /// Its standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Its standard error as text.
    pub fn error_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

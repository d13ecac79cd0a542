// SPDX-License-Identifier: GPL-2.0-or-later
//! Running the host's programs.

use std::io::{Read, Seek};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::console::scratch;
use crate::error::{Error, Result};

/// The number of a failed program's last lines that an error shows.
const LINES_SAID: usize = 5;

/// Runs `command` to its end and returns what it printed.
///
/// # Errors
/// [`Error::Spawn`] when there is no such program, [`Error::Program`] with its last words when it
/// fails.
pub(crate) fn output(command: &mut Command, doing: &str) -> Result<String> {
    command.stdin(Stdio::null());
    let output = command.output().map_err(|error| spawn(command, error))?;
    if !output.status.success() {
        return Err(failed(command, doing, &output.stderr, output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs `command` to its end and calls `tick` every tenth of a second meanwhile.
///
/// # Errors
/// As [`output`].
pub(crate) fn watched(command: &mut Command, doing: &str, tick: impl Fn()) -> Result<()> {
    // The program writes to a file; a pipe that nobody reads would fill up and stop it.
    let words = |error| Error::file("make", &std::env::temp_dir())(error);
    let mut said = scratch("perch")?;
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(said.try_clone().map_err(words)?);
    let mut child = command.spawn().map_err(|error| spawn(command, error))?;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => std::thread::sleep(Duration::from_millis(100)),
            Err(error) => return Err(spawn(command, error)),
        }
        tick();
    };
    if status.success() {
        return Ok(());
    }
    let mut text = Vec::new();
    let _ = said.rewind().and_then(|()| said.read_to_end(&mut text));
    Err(failed(command, doing, &text, status))
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

fn spawn(command: &Command, source: std::io::Error) -> Error {
    let program = name(command);
    Error::Spawn {
        remedy: format!("install {program}, or see that it is on PATH"),
        program,
        source,
    }
}

fn failed(command: &Command, doing: &str, said: &[u8], status: ExitStatus) -> Error {
    let text = String::from_utf8_lossy(said);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES_SAID)..];
    Error::Program {
        program: name(command),
        doing: doing.to_string(),
        said: if last.is_empty() { status.to_string() } else { last.join("; ") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_programs_last_words_are_passed_on() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo data; echo why >&2; exit 3"]);
        let message = output(&mut shell, "trying").unwrap_err().to_string();
        assert_eq!(message, "sh failed while trying: why");
        let message = watched(&mut shell, "trying", || ()).unwrap_err().to_string();
        assert_eq!(message, "sh failed while trying: why");
        let mut silent = Command::new("false");
        let message = output(&mut silent, "trying").unwrap_err().to_string();
        assert!(message.contains("exit status: 1"), "{message}");
    }

    #[test]
    fn a_program_that_is_not_there_says_what_to_do() {
        let message = output(&mut Command::new("perch-no-such"), "trying").unwrap_err();
        assert!(matches!(message, Error::Spawn { .. }));
        assert!(message.to_string().contains("install perch-no-such"));
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The ways of results to stdout, and of words and failures to stderr.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::io::{ErrorKind, IsTerminal, Write};

use perch_experiment::ExperimentError;
use perch_machine::MachineError;
use perch_report::{Format, ResultFormat};

use crate::exit;

/// The reason why the command ends early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code, of those in `exit.rs`.
    pub code: u8,
    /// The message for the user.
    pub message: String,
}

impl Failure {
    /// A failure because the request makes no sense.
    pub fn input(message: impl Into<String>) -> Failure {
        Failure { code: exit::INPUT, message: message.into() }
    }

    /// A gate that failed: the work is done, and its result is not as somebody wants it.
    pub fn gate(message: impl Into<String>) -> Failure {
        Failure { code: exit::GATE, message: message.into() }
    }

    /// Returns the failure with the name of what failed before the message.
    pub fn of(self, name: &str) -> Failure {
        Failure { message: format!("{name}: {}", self.message), ..self }
    }

    /// A failure of the work itself.
    pub fn run(message: impl Into<String>) -> Failure {
        Failure { code: exit::FAILED, message: message.into() }
    }
}

impl From<MachineError> for Failure {
    fn from(error: MachineError) -> Failure {
        Failure::input(error.to_string())
    }
}

impl From<ExperimentError> for Failure {
    fn from(error: ExperimentError) -> Failure {
        let code = if error.is_input() { 2 } else { 1 };
        Failure { code, message: error.to_string() }
    }
}

/// Returns whether a terminal would do something else with a character than show it, or show its
/// neighbours in another order. Line ends and tabs are perch's own.
fn steers(c: char) -> bool {
    let turns = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    turns || (c.is_control() && !matches!(c, '\n' | '\t'))
}

/// Returns the text with each character that steers a terminal written out, as `\u202e`: file names
/// and names in files come from anybody. JSON stays the same JSON.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        let _ = if steers(c) { write!(out, "\\u{:04x}", u32::from(c)) } else { write!(out, "{c}") };
    }
    Cow::Owned(out)
}

/// Writes words for a person to stderr, on a line of their own.
pub fn say(words: impl Display) {
    let words = format!("perch: {words}\n");
    // Where stderr is closed, nobody is left to be told.
    let _ = std::io::stderr().write_all(escaped(&words).as_bytes());
}

/// Writes words, tables or JSON to stdout. A reader that has seen enough (`| head`) is not a failure.
pub fn emit(text: &str) -> Result<(), Failure> {
    write_out(&escaped(text))
}

/// Writes a text to stdout that a program reads in a format without escapes for what steers a
/// terminal: only a terminal gets them.
pub fn emit_data(text: &str) -> Result<(), Failure> {
    if std::io::stdout().is_terminal() { emit(text) } else { write_out(text) }
}

/// Writes a result to stdout by [`emit`] or [`emit_data`].
pub fn emit_as(format: impl Into<ResultFormat>, text: &str) -> Result<(), Failure> {
    match format.into() {
        ResultFormat::Plain(Format::Csv) => emit_data(text),
        _ => emit(text),
    }
}

fn write_out(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::run(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_written_out() {
        assert_eq!(escaped("a\tb\n\u{e9}"), "a\tb\n\u{e9}");
        let hostile = "\u{1b}[31m\r\u{9b}\u{7f} a\u{202e}b";
        assert_eq!(escaped(hostile), "\\u001b[31m\\u000d\\u009b\\u007f a\\u202eb");
        let json = serde_json::to_string(hostile).unwrap();
        assert!(!escaped(&json).contains(steers));
        assert_eq!(serde_json::from_str::<String>(&escaped(&json)).unwrap(), hostile);
    }
}

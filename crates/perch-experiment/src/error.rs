// SPDX-License-Identifier: GPL-2.0-or-later
//! The errors of experiments and comparisons.

use perch_machine::{MachineError, Problem};

/// The reason why an experiment was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A file could not be read.
    #[error(transparent)]
    Read(#[from] perch_file::FileError),
    /// A file contradicts itself, lacks something or is not in the format.
    #[error("{0}")]
    Invalid(Box<Problem>),
    /// The name is neither a library experiment's nor a file's.
    #[error(
        "no experiment `{name}`: neither a library experiment nor a file; the library has {known}"
    )]
    Unknown {
        /// The name that the user gave.
        name: String,
        /// The names of the library's experiments.
        known: String,
    },
    /// The machine library refused the machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// An argument makes no sense; the sentence says which argument, and what was expected.
    #[error("{0}")]
    Argument(String),
    /// A simulation failed.
    #[error("{what}: {reason}")]
    Run {
        /// The simulation that failed: benchmark, place, row, arm, repetition.
        what: String,
        /// The simulator's message.
        reason: String,
    },
}

impl ExperimentError {
    /// Returns true where the user's input is to blame (exit code 2) rather than the run (exit code
    /// 1).
    pub fn is_input(&self) -> bool {
        !matches!(self, ExperimentError::Run { .. })
    }
}

/// A file's text, with all that an error needs to blame a place in it.
pub(crate) struct Source<'a> {
    pub origin: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// Returns the error that blames the bytes at `at`.
    pub fn problem(
        &self,
        at: usize,
        key: impl Into<String>,
        reason: impl Into<String>,
        expected: impl Into<String>,
    ) -> ExperimentError {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        ExperimentError::Invalid(Box::new(Problem {
            origin: self.origin.to_string(),
            line: Some(line),
            key: key.into(),
            reason: reason.into(),
            expected: expected.into(),
        }))
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Why there is no experiment, or no result.

use perch_machine::{MachineError, Problem};

/// Why an experiment was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// What was to be read.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file contradicts itself, lacks something or is not in the format.
    #[error("{0}")]
    Invalid(Box<Problem>),
    /// Neither a library experiment nor a file.
    #[error(
        "no experiment `{name}`: neither a library experiment nor a file; the library has {known}"
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// The library's names.
        known: String,
    },
    /// The machine was refused.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// An argument makes no sense; the sentence says which and what was expected.
    #[error("{0}")]
    Argument(String),
    /// A simulation failed.
    #[error("{what}: {reason}")]
    Run {
        /// Which one: benchmark, place, row, arm, repetition.
        what: String,
        /// What the simulator said.
        reason: String,
    },
}

impl ExperimentError {
    /// Whether what the user gave is to blame (exit code 2) rather than the run (exit code 1).
    pub fn is_input(&self) -> bool {
        !matches!(self, ExperimentError::Run { .. })
    }
}

/// A file's text, with what is needed to blame a place in it.
pub(crate) struct Source<'a> {
    pub origin: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// The error that the bytes at `at` are to blame for.
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

// SPDX-License-Identifier: GPL-2.0-or-later
//! The errors of experiments, comparisons, sweeps and stores.

use std::fmt::Display;
use std::io;
use std::path::Path;

use perch_machine::{MachineError, Problem};

/// The reason why an experiment, a simulation, a sweep or a store was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A file could not be read.
    #[error(transparent)]
    Read(#[from] perch_file::FileError),
    /// A file contradicts itself, lacks something or is not in the format.
    #[error("{0}")]
    Invalid(Box<Problem>),
    /// The name is neither the library's nor a file's.
    #[error("no {what} `{name}`: neither a library {what} nor a file; the library has {known}")]
    Unknown {
        /// An experiment or a sweep.
        what: &'static str,
        /// The name that the user gave.
        name: String,
        /// The names that the library has.
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
    /// A store cannot be used.
    #[error("store {path}: {reason}")]
    Store {
        /// The store's folder.
        path: String,
        /// The mistake, and the way out.
        reason: String,
    },
    /// The system refused to read or to write.
    #[error("{path}: {source}")]
    Io {
        /// The file or the folder.
        path: String,
        /// The system's error.
        source: io::Error,
    },
}

impl ExperimentError {
    /// Returns true where the user's input is to blame (exit code 2) rather than the run (exit code
    /// 1).
    pub fn is_input(&self) -> bool {
        !matches!(self, ExperimentError::Run { .. } | ExperimentError::Io { .. })
    }

    /// Returns the error of a simulation of a load.
    pub(crate) fn run(
        load: &str,
        arm: &str,
        repetition: usize,
        reason: impl Display,
    ) -> ExperimentError {
        ExperimentError::Run {
            what: format!("{load}, arm {arm}, repetition {repetition}"),
            reason: reason.to_string(),
        }
    }

    /// Returns the error that blames a key of a file or of a simulation, or all of it.
    pub(crate) fn key(
        origin: &str,
        key: impl Into<String>,
        reason: impl Display,
    ) -> ExperimentError {
        ExperimentError::Invalid(Box::new(Problem {
            origin: origin.to_string(),
            line: None,
            key: key.into(),
            reason: reason.to_string(),
            expected: String::new(),
        }))
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> ExperimentError {
        let path = path.display().to_string();
        |source| ExperimentError::Io { path, source }
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

// SPDX-License-Identifier: GPL-2.0-or-later
//! The reasons why a sweep, a simulation of it or a store was refused or failed.

use std::fmt::Display;
use std::io;
use std::path::Path;

use perch_experiment::ExperimentError;
use perch_file::FileError;
use perch_machine::MachineError;

/// The reason why a sweep, a simulation of it or a store was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A file could not be read.
    #[error(transparent)]
    Read(#[from] FileError),
    /// The name is neither a library sweep's nor a file's.
    #[error("no sweep `{name}`: neither a library sweep nor a file; the library has {known}")]
    Unknown {
        /// The name that the user gave.
        name: String,
        /// The names of the library's sweeps.
        known: String,
    },
    /// A machine was refused.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// A simulation was refused or failed.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// A key of a file or of a simulation makes no sense.
    #[error("{origin}: `{key}`: {reason}")]
    Key {
        /// The file, or the simulation.
        origin: String,
        /// The key.
        key: String,
        /// The mistake, and the thing that was expected.
        reason: String,
    },
    /// A file is not in its format.
    #[error("{origin}: {reason}")]
    Format {
        /// The file.
        origin: String,
        /// The mistake, and the thing that was expected.
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

impl SweepError {
    /// Returns true where what was asked is to blame (exit code 2) rather than the work (exit code
    /// 1).
    pub fn is_input(&self) -> bool {
        match self {
            SweepError::Experiment(error) => error.is_input(),
            SweepError::Io { .. } => false,
            _ => true,
        }
    }

    pub(crate) fn key(origin: &str, key: impl Into<String>, reason: impl Display) -> SweepError {
        SweepError::Key { origin: origin.to_string(), key: key.into(), reason: reason.to_string() }
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> SweepError {
        let path = path.display().to_string();
        |source| SweepError::Io { path, source }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The reasons why a description of a machine was refused, in words for the person who wrote it.

use std::fmt;

/// One mistake in a description: its place, its nature, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, the library machine or the sysfs tree.
    pub origin: String,
    /// The line in `origin`, from 1, where the format has lines.
    pub line: Option<usize>,
    /// The key, the XML element or the file below the sysfs root; empty when none is to blame.
    pub key: String,
    /// The mistake.
    pub reason: String,
    /// The correct form, or what to do about the mistake; empty when `reason` says it.
    pub expected: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.origin)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": `{}`", self.key)?;
        }
        write!(f, ": {}", self.reason)?;
        if !self.expected.is_empty() {
            write!(f, "; {}", self.expected)?;
        }
        Ok(())
    }
}

/// The reason why there is no [`crate::Machine`].
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// A file could not be read.
    #[error(transparent)]
    Read(#[from] perch_file::FileError),
    /// The description contradicts itself, lacks something or is not in the format.
    #[error("{0}")]
    Invalid(Box<Problem>),
    /// No library machine has this name and no file has this path.
    #[error("no machine `{name}`: {}", suggestion(.near))]
    Unknown {
        /// The name that the user gave.
        name: String,
        /// The library's names that resemble it, best first; all names when none does.
        near: Vec<String>,
    },
}

fn suggestion(near: &[String]) -> String {
    format!(
        "neither a library machine nor a file; did you mean {}? (`perch machine list` shows all)",
        near.join(", ")
    )
}

/// A place in a description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub key: String,
    pub line: Option<usize>,
}

impl Place {
    pub fn key(key: impl Into<String>) -> Place {
        Place { key: key.into(), line: None }
    }

    /// Returns the error that blames this place.
    pub fn problem(
        &self,
        origin: &str,
        reason: impl Into<String>,
        expected: impl Into<String>,
    ) -> MachineError {
        MachineError::Invalid(Box::new(Problem {
            origin: origin.to_string(),
            line: self.line,
            key: self.key.clone(),
            reason: reason.into(),
            expected: expected.into(),
        }))
    }
}

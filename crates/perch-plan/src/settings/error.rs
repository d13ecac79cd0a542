// SPDX-License-Identifier: GPL-2.0-or-later
//! The errors of the settings that a user asks for.

use super::table::{SETTINGS, keys};
use crate::described::Difference;
use crate::interface::MAX_BANDS;
use crate::rule::RuleError;
use crate::value::ValueError;

/// The reason why a configuration makes no sense, on this machine or anywhere.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] perch_file::FileError),
    /// The file says something wrong.
    #[error("{origin}:{line}: {source}")]
    File {
        /// The file's name.
        origin: String,
        /// The line, from 1.
        line: usize,
        /// The defect at that place.
        source: Box<Problem>,
    },
    /// `--set` says something wrong about a setting.
    #[error("--set: {0}")]
    Set(#[source] Box<Problem>),
    /// `--set` says something wrong about a mechanism.
    #[error("{0}")]
    Modes(#[source] perch_policy::ParseError),
    /// `--band` or `--partial` says something wrong, or names a user that there is not.
    #[error("{key} \"{rule}\": {source}")]
    Rule {
        /// `band` or `partial`.
        key: &'static str,
        /// The whole rule.
        rule: String,
        /// The defect of the rule.
        source: RuleError,
    },
    /// More rules of the real-time band than there is room for.
    #[error("{TooManyBands}")]
    TooManyBands,
    /// A table takes more memory than it should, on this machine.
    #[error(
        "{key}: {asked} of them take {mib} MiB on this machine of {cpus} CPUs: expected at most \
         {most_mib} MiB"
    )]
    Memory {
        /// The setting that says how many there are.
        key: &'static str,
        /// Their number.
        asked: usize,
        /// Their memory, MiB.
        mib: usize,
        /// CPUs of the machine.
        cpus: usize,
        /// The most memory that they may take, MiB.
        most_mib: usize,
    },
    /// A last-level cache has fewer cores than it should have parts.
    #[error("split_llc: {0}")]
    Split(#[source] perch_machine::SplitError),
    /// The machine that is to be believed in cannot be this one.
    #[error("{name} is not this machine: {source}")]
    OtherMachine {
        /// The name of the description.
        name: String,
        /// The first difference.
        source: Difference,
    },
}

impl From<Problem> for SettingsError {
    /// A problem that stands in no file.
    fn from(problem: Problem) -> SettingsError {
        SettingsError::Set(Box::new(problem))
    }
}

/// A defect of a key or of its value.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// Not TOML.
    #[error("{}", .0.message())]
    Toml(#[source] Box<toml::de::Error>),
    /// No key of a file.
    #[error("unknown key \"{0}\": expected {list}; perch run --help describes them", list = keys().join(", "))]
    Key(String),
    /// Neither a mechanism nor a setting.
    #[error(
        "unknown mechanism or setting \"{0}\": expected {mechanisms}, {settings}; perch run --help \
         describes them",
        mechanisms = perch_policy::Mechanism::ALL.map(|m| m.name()).join(", "),
        settings = setting_names()
    )]
    Name(String),
    /// A setting that is there twice in one `--set`.
    #[error("{0} is set twice: expected it once")]
    Twice(String),
    /// A value that its key does not take.
    #[error("{key}: {source}")]
    Value {
        /// The key.
        key: &'static str,
        /// The defect of its value.
        source: ValueError,
    },
    /// Modes that do not exist.
    #[error("modes: {0}")]
    Modes(#[source] perch_policy::ParseError),
    /// A rule that chooses no tasks, or says nothing sensible of them.
    #[error("{key}: {source}")]
    Rule {
        /// `band` or `partial`.
        key: &'static str,
        /// The defect of the rule.
        source: RuleError,
    },
    /// Something else than rules.
    #[error(
        "{key}: {given}: expected tables, each below a line [[{key}]]; perch run --help shows one"
    )]
    NoRules {
        /// The key.
        key: &'static str,
        /// The value, as it was written.
        given: String,
    },
    /// More rules than there is room for.
    #[error("{TooManyBands}")]
    TooManyBands,
}

/// The words for it, wherever it is found.
struct TooManyBands;

impl std::fmt::Display for TooManyBands {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "band: too many of them: expected at most {MAX_BANDS}")
    }
}

fn setting_names() -> String {
    let names: Vec<_> = SETTINGS.iter().map(|setting| setting.name).collect();
    names.join(", ")
}

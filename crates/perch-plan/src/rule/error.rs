// SPDX-License-Identifier: GPL-2.0-or-later
//! The errors of a rule's keys.

use std::ops::RangeInclusive;

use crate::interface::{BAND_GLOB, BAND_NAME, BAND_PATH};
use crate::value::ValueError;

/// The reason why a rule makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RuleError {
    /// A word of the command line without a value.
    #[error("\"{given}\": expected KEY=VALUE, such as {example}")]
    NoPair {
        /// The word.
        given: String,
        /// A rule that would do.
        example: &'static str,
    },
    /// No key of such a rule.
    #[error("unknown key \"{given}\": expected {expected}")]
    Key {
        /// The word.
        given: String,
        /// The keys that there are.
        expected: String,
    },
    /// A key that is there twice.
    #[error("{0} is there twice")]
    Twice(String),
    /// A value that its key does not take.
    #[error("{key}: {source}")]
    Value {
        /// The key.
        key: &'static str,
        /// The defect of its value.
        source: ValueError,
    },
    /// A name that no command has.
    #[error("comm: {given:?}: {source}")]
    Comm {
        /// The pattern.
        given: String,
        /// The defect of the pattern.
        source: CommError,
    },
    /// A path that no cgroup has.
    #[error("cgroup: {given:?}: {source}")]
    Cgroup {
        /// The path.
        given: String,
        /// The defect of the path.
        source: CgroupError,
    },
    /// Neither a user's name nor a number.
    #[error("user: {0}: expected a user's name in /etc/passwd, or a number")]
    User(String),
    /// A name that this system does not have.
    #[error(
        "user: /etc/passwd has no \"{0}\": expected a user's name there, or the user's number \
         (id -u NAME)"
    )]
    NoUser(String),
    /// A rule that names a user, where no task has one.
    #[error("user: the tasks of a simulated machine have no users: leave it out")]
    NoUsers,
    /// The rule chooses every task; the keys of which it needs one.
    #[error("it names no tasks: expected {0}, or several of them")]
    NoTasks(&'static str),
    /// A rule of the real-time band that says nothing of the tasks that it chooses.
    #[error("no priority: expected priority = {} to {}", .0.start(), .0.end())]
    NoPriority(RangeInclusive<i64>),
    /// A policy that does not exist.
    #[error("policy: {0:?}: expected fifo or rr")]
    Policy(String),
    /// A turn of tasks that take no turns.
    #[error("slice_ms: the task that is first in goes on: expected policy = \"rr\" with it")]
    SliceOfFifo,
}

impl RuleError {
    /// The key that the error is about; none where one is missing.
    pub(crate) fn key(&self) -> Option<&str> {
        match self {
            RuleError::Key { given, .. } => Some(given),
            RuleError::Twice(key) => Some(key),
            RuleError::Value { key, .. } => Some(key),
            RuleError::Comm { .. } => Some("comm"),
            RuleError::Cgroup { .. } => Some("cgroup"),
            RuleError::User(_) | RuleError::NoUser(_) | RuleError::NoUsers => Some("user"),
            RuleError::Policy(_) => Some("policy"),
            RuleError::SliceOfFifo => Some("slice_ms"),
            RuleError::NoPair { .. } | RuleError::NoTasks(_) | RuleError::NoPriority(_) => None,
        }
    }
}

/// The reason why a pattern fits no command's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommError {
    /// Empty, or with a byte that ends a name.
    #[error("expected a command's name, with * for any characters and ? for one")]
    NoName,
    /// Longer than any name.
    #[error(
        "expected at most 15 characters besides *: the kernel keeps no more of a command's name \
         (see /proc/PID/comm)"
    )]
    LongName,
    /// Longer than the BPF program's place for it.
    #[error("expected at most {} characters", BAND_GLOB - 1)]
    LongPattern,
}

/// The reason why a path leads to no cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CgroupError {
    /// Not a path from the root of cgroups.
    #[error("expected a cgroup's path below /sys/fs/cgroup, such as /rt or /rt/audio")]
    NoPath,
    /// A folder's name is longer than the BPF program's place for it.
    #[error("expected folders of at most {} characters", BAND_NAME - 1)]
    LongFolder,
    /// Longer than the BPF program's place for it.
    #[error("expected at most {} characters", BAND_PATH - 1)]
    LongPath,
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The errors of a rule of the real-time band.

use super::keys::{KEYS, PRIORITIES};
use crate::interface::{BAND_GLOB, BAND_NAME, BAND_PATH};
use crate::value::ValueError;

/// The reason why a rule makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BandError {
    /// A word of `--band` without a value.
    #[error("\"{0}\": expected KEY=VALUE, such as comm=ffmpeg*,priority=50")]
    NoPair(String),
    /// No key of a rule.
    #[error("unknown key \"{0}\": expected {list}", list = key_list())]
    Key(String),
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
    /// A policy that does not exist.
    #[error("policy: {0:?}: expected fifo or rr")]
    Policy(String),
    /// The rule chooses every task.
    #[error("it names no tasks: expected comm, cgroup or nice, or several of them")]
    NoTasks,
    /// The rule says nothing of the tasks that it chooses.
    #[error("no priority: expected priority = {} to {}", PRIORITIES.start(), PRIORITIES.end())]
    NoPriority,
    /// A turn of tasks that take no turns.
    #[error("slice_ms: the task that is first in goes on: expected policy = \"rr\" with it")]
    SliceOfFifo,
}

impl BandError {
    /// The key that the error is about; none where one is missing.
    pub(super) fn key(&self) -> Option<&str> {
        match self {
            BandError::Key(key) | BandError::Twice(key) => Some(key),
            BandError::Value { key, .. } => Some(key),
            BandError::Comm { .. } => Some("comm"),
            BandError::Cgroup { .. } => Some("cgroup"),
            BandError::Policy(_) => Some("policy"),
            BandError::SliceOfFifo => Some("slice_ms"),
            BandError::NoPair(_) | BandError::NoTasks | BandError::NoPriority => None,
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
    /// Longer than the place for it.
    #[error("expected at most {} characters", BAND_GLOB - 1)]
    LongPattern,
}

/// The reason why a path leads to no cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CgroupError {
    /// Not a path from the root of cgroups.
    #[error("expected a cgroup's path below /sys/fs/cgroup, such as /rt or /rt/audio")]
    NoPath,
    /// A folder's name is longer than the place for it.
    #[error("expected folders of at most {} characters", BAND_NAME - 1)]
    LongFolder,
    /// Longer than the place for it.
    #[error("expected at most {} characters", BAND_PATH - 1)]
    LongPath,
}

fn key_list() -> String {
    let names: Vec<_> = KEYS.iter().map(|key| key.name).collect();
    let (last, others) = names.split_last().expect("a rule has keys");
    format!("{} or {last}", others.join(", "))
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The errors of a rule of the real-time band.

use super::keys::PRIORITIES;
use crate::rule::RuleError;

/// The reason why a rule makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BandError {
    /// A key that makes no sense, or is none.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// A policy that does not exist.
    #[error("policy: {0:?}: expected fifo or rr")]
    Policy(String),
    /// The rule chooses every task.
    #[error("it names no tasks: expected comm, cgroup, nice or user, or several of them")]
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
            BandError::Rule(error) => error.key(),
            BandError::Policy(_) => Some("policy"),
            BandError::SliceOfFifo => Some("slice_ms"),
            BandError::NoTasks | BandError::NoPriority => None,
        }
    }
}

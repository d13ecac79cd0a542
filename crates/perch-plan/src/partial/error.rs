// SPDX-License-Identifier: GPL-2.0-or-later
//! The errors of a rule of `--partial`.

use crate::rule::RuleError;

/// The reason why a rule makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PartialError {
    /// A key that makes no sense, or is none.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The rule chooses every task.
    #[error("it names no tasks: expected comm, cgroup or user, or several of them")]
    NoTasks,
}

impl PartialError {
    /// The key that the error is about; none where one is missing.
    pub(super) fn key(&self) -> Option<&str> {
        match self {
            PartialError::Rule(error) => error.key(),
            PartialError::NoTasks => None,
        }
    }
}

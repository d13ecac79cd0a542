// SPDX-License-Identifier: GPL-2.0-or-later
//! The rules of `perch run --partial`: which tasks are perch's where it does not schedule all.

mod error;
mod keys;

use std::fmt;

use crate::rule::User;
pub use error::PartialError;
pub(crate) use keys::Draft;

/// Tasks that perch schedules where it is not to schedule all.
///
/// A task is chosen when all that is named is so, by any of several rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partial {
    /// The name of the command, `/proc/PID/comm`: a pattern with `*` and `?`.
    comm: Option<String>,
    /// A cgroup's path below /sys/fs/cgroup, from its root; those below it are meant, too.
    cgroup: Option<String>,
    /// The user by whose rights the task acts.
    user: Option<User>,
}

impl Partial {
    /// Returns the pattern of the command's name, if the rule has one.
    pub fn comm(&self) -> Option<&str> {
        self.comm.as_deref()
    }

    /// Returns the cgroup's path, if the rule has one.
    pub fn cgroup(&self) -> Option<&str> {
        self.cgroup.as_deref()
    }

    /// Returns the user, if the rule has one.
    pub fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }
}

impl fmt::Display for Partial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_ref().map(User::to_string);
        let pairs = [("comm", &self.comm), ("cgroup", &self.cgroup), ("user", &user)];
        let pairs = pairs.into_iter().filter_map(|(key, value)| {
            let value = value.as_ref()?;
            Some(format!("{key}={value}"))
        });
        f.write_str(&pairs.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests;

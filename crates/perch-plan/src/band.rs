// SPDX-License-Identifier: GPL-2.0-or-later
//! The real-time band of the configuration: which tasks have which priority.

mod keys;

use std::fmt;

use crate::interface;
use crate::rule::{User, folders};
use crate::value::Millis;
pub(crate) use keys::Draft;

/// Tasks that go before all others, and among each other by priority.
///
/// A task is chosen when all that is named is so; the first rule that fits a task counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Band {
    /// The name of the command, `/proc/PID/comm`: a pattern with `*` and `?`.
    pub(crate) comm: Option<String>,
    /// A cgroup's path below /sys/fs/cgroup, from its root; those below it are meant, too.
    pub(crate) cgroup: Option<String>,
    /// The niceness.
    pub(crate) nice: Option<i8>,
    /// The user whose the task is, and by whose rights it acts.
    pub(crate) user: Option<User>,
    /// 1 to 99, the highest goes first.
    pub(crate) priority: u8,
    /// Round robin: the turn of each task of this priority (1 to 1000 ms). None: the task that came
    /// first runs until it sleeps.
    pub(crate) slice_ms: Option<Millis>,
}

impl fmt::Display for Band {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(comm) = &self.comm {
            write!(f, "comm={comm},")?;
        }
        if let Some(cgroup) = &self.cgroup {
            write!(f, "cgroup={cgroup},")?;
        }
        if let Some(nice) = self.nice {
            write!(f, "nice={nice},")?;
        }
        if let Some(user) = &self.user {
            write!(f, "user={user},")?;
        }
        write!(f, "priority={}", self.priority)?;
        match self.slice_ms {
            Some(slice) => write!(f, ",slice_ms={}", slice.0),
            None => Ok(()),
        }
    }
}

impl Band {
    /// True if any user can have a task that fits: a command has any name, and a niceness from 0 on.
    pub(crate) fn is_open(&self) -> bool {
        self.cgroup.is_none() && self.user.is_none() && self.nice.is_none_or(|nice| nice >= 0)
    }

    /// As the BPF program reads it. A user whose number has not been looked up is nobody.
    pub(crate) fn image(&self) -> interface::Band {
        let mut out = interface::Band {
            slice_ns: self.slice_ms.map_or(0, Millis::ns),
            flags: 0,
            prio: self.priority.into(),
            nice: self.nice.unwrap_or(0).into(),
            depth: 0,
            comm: [0; interface::BAND_GLOB],
            path: [0; interface::BAND_PATH],
            uid: interface::NONE,
            line: 0,
        };
        if let Some(comm) = &self.comm {
            out.flags |= interface::BAND_COMM;
            out.comm[..comm.len()].copy_from_slice(comm.as_bytes());
        }
        if let Some(cgroup) = &self.cgroup {
            out.flags |= interface::BAND_CGROUP;
            let mut at = 0;
            for folder in folders(cgroup) {
                out.path[at..at + folder.len()].copy_from_slice(folder.as_bytes());
                at += folder.len() + 1;
                out.depth += 1;
            }
        }
        if self.nice.is_some() {
            out.flags |= interface::BAND_NICE;
        }
        if let Some(user) = &self.user {
            out.flags |= interface::BAND_USER;
            if let User::Number(number) = user {
                out.uid = *number;
            }
        }
        out
    }
}

#[cfg(test)]
mod tests;

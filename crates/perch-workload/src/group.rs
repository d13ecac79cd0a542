// SPDX-License-Identifier: GPL-2.0-or-later
//! Task groups: the cgroups that a workload puts its tasks into, each with a weight.

use std::collections::BTreeSet;

use crate::{Class, Workload};

/// Shares that a group may have (`cpu.shares`).
pub const SHARES: std::ops::RangeInclusive<u32> = 2..=262_144;

/// Shares that the kernel gives a new group.
pub const DEFAULT_SHARES: u32 = 1024;

/// The most entries, groups times CPUs, that a run may have: a CPU keeps an entry for each group.
const MOST_ENTRIES: usize = 1 << 25;

/// The most levels of groups in one another: the simulator's walks up and down are not made for
/// more.
const MOST_LEVELS: usize = 32;

/// A task group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSpec {
    /// The group's name; no two groups of a workload have the same.
    pub name: String,
    /// Number of the group that this group is in, less than its own number; `None` for the root
    /// group.
    pub parent: Option<usize>,
    /// The group's weight among the tasks and groups beside it, 2 to 262144. A task of nice 0 has
    /// 1024.
    pub shares: u32,
}

/// The reason why a kernel cannot have a workload's groups, or the tasks in them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// There are more groups than a run on this number of CPUs may have.
    #[error(
        "{groups} groups on {cpus} CPUs: expected at most {} groups",
        MOST_ENTRIES / .cpus
    )]
    TooMany {
        /// Number of groups.
        groups: usize,
        /// Number of CPUs.
        cpus: usize,
    },
    /// A group's shares are out of [`SHARES`].
    #[error(
        "group \"{name}\" has {shares} shares: expected {} to {}",
        SHARES.start(),
        SHARES.end()
    )]
    Shares {
        /// Name of the group.
        name: String,
        /// Its shares.
        shares: u32,
    },
    /// Two groups have one name.
    #[error("two groups are called \"{name}\": expected a name of its own for each")]
    NameTwice {
        /// The name.
        name: String,
    },
    /// A group is in one that comes after it, or in itself.
    #[error(
        "group \"{name}\", number {number}, is in group number {parent}: expected a group that \
         comes before it"
    )]
    Parent {
        /// Name of the group.
        name: String,
        /// Its number.
        number: usize,
        /// Number of the group that it is in.
        parent: usize,
    },
    /// Groups are in one another more deeply than the simulator's walks go.
    #[error("group \"{name}\" is at level {level}: expected at most {MOST_LEVELS} levels")]
    Level {
        /// Name of the group.
        name: String,
        /// Its level, from 1.
        level: usize,
    },
    /// A task is in a group that does not exist.
    #[error(
        "task {task} is in group number {group}: expected a number below {groups}, the number of \
         groups"
    )]
    NoGroup {
        /// Number of the task.
        task: usize,
        /// Number of the group.
        group: usize,
        /// Number of groups.
        groups: usize,
    },
    /// A real-time task is in a group.
    #[error(
        "task {task} is real-time and in group \"{name}\": expected it in the root group; only the \
         fair class has groups here"
    )]
    RealTime {
        /// Number of the task.
        task: usize,
        /// Name of the group.
        name: String,
    },
}

/// Refuses a workload whose groups a kernel on `cpus` CPUs cannot have, or whose tasks are in
/// groups that do not exist or in which they cannot be.
///
/// # Errors
/// The first of these that this function finds.
pub fn check(workload: &Workload, cpus: usize) -> Result<(), GroupError> {
    let groups = &workload.groups;
    if groups.len().saturating_mul(cpus) > MOST_ENTRIES {
        return Err(GroupError::TooMany { groups: groups.len(), cpus });
    }
    let mut names = BTreeSet::new();
    let mut levels = vec![1; groups.len()];
    for (number, group) in groups.iter().enumerate() {
        let name = || group.name.clone();
        if !SHARES.contains(&group.shares) {
            return Err(GroupError::Shares { name: name(), shares: group.shares });
        }
        if !names.insert(&group.name) {
            return Err(GroupError::NameTwice { name: name() });
        }
        let Some(parent) = group.parent else {
            continue;
        };
        if parent >= number {
            return Err(GroupError::Parent { name: name(), number, parent });
        }
        levels[number] = levels[parent] + 1;
        if levels[number] > MOST_LEVELS {
            return Err(GroupError::Level { name: name(), level: levels[number] });
        }
    }
    for (task, spec) in workload.tasks.iter().enumerate() {
        let Some(group) = spec.group else {
            continue;
        };
        if group >= groups.len() {
            return Err(GroupError::NoGroup { task, group, groups: groups.len() });
        }
        if spec.class != Class::Fair {
            return Err(GroupError::RealTime { task, name: groups[group].name.clone() });
        }
    }
    Ok(())
}

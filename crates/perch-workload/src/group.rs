// SPDX-License-Identifier: GPL-2.0-or-later
//! Task groups: the cgroups that a workload puts its tasks into, each with a weight.

use std::collections::BTreeSet;

use crate::{Class, Workload};

/// Shares that a group may have (`cpu.shares`).
pub const SHARES: std::ops::RangeInclusive<u32> = 2..=262_144;

/// Shares that the kernel gives a new group.
pub const DEFAULT_SHARES: u32 = 1024;

/// The most places, groups times CPUs, that a run may have: a CPU keeps an entry for each group.
const MOST_PLACES: usize = 1 << 25;

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

/// Refuses a workload whose groups a kernel on `cpus` CPUs cannot have, or whose tasks are in
/// groups that do not exist or in which they cannot be.
///
/// # Errors
/// The message says what is wrong, where, and what was expected.
pub fn check(workload: &Workload, cpus: usize) -> Result<(), String> {
    let groups = &workload.groups;
    if groups.len().saturating_mul(cpus) > MOST_PLACES {
        return Err(format!(
            "{} groups on {cpus} CPUs: expected at most {} groups on so many CPUs",
            groups.len(),
            MOST_PLACES / cpus
        ));
    }
    let mut names = BTreeSet::new();
    let mut levels = vec![1; groups.len()];
    for (number, group) in groups.iter().enumerate() {
        let name = &group.name;
        if !SHARES.contains(&group.shares) {
            return Err(format!(
                "group \"{name}\" has {} shares: expected {} to {}",
                group.shares,
                SHARES.start(),
                SHARES.end()
            ));
        }
        if !names.insert(name) {
            return Err(format!(
                "two groups are called \"{name}\": expected a name of its own for each"
            ));
        }
        let Some(parent) = group.parent else {
            continue;
        };
        if parent >= number {
            return Err(format!(
                "group \"{name}\", number {number}, is in group number {parent}: expected a group \
                 that comes before it"
            ));
        }
        levels[number] = levels[parent] + 1;
        if levels[number] > MOST_LEVELS {
            return Err(format!(
                "group \"{name}\" is at level {}: expected at most {MOST_LEVELS} levels",
                levels[number]
            ));
        }
    }
    for (task, spec) in workload.tasks.iter().enumerate() {
        let Some(group) = spec.group else {
            continue;
        };
        if group >= groups.len() {
            return Err(format!(
                "task {task} is in group number {group}: expected a number below {}, the number \
                 of groups",
                groups.len()
            ));
        }
        if spec.class != Class::Fair {
            return Err(format!(
                "task {task} is real-time and in group \"{}\": expected it in the root group; \
                 only the fair class has groups here",
                groups[group].name
            ));
        }
    }
    Ok(())
}

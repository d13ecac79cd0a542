// SPDX-License-Identifier: GPL-2.0-or-later
//! The state of task groups and of their queues.

use perch_policy::GroupId;

use super::window::Window;
use crate::setup::{NewGroup, NewTask};

/// The number of 32 bits that stands for no group, no queue or no entity.
pub const NONE: u32 = u32::MAX;

/// The least weight of a group on a CPU (`MIN_SHARES`).
pub(crate) const MIN_SHARES: u32 = 2;

/// A task group.
#[derive(Debug)]
pub(crate) struct Group {
    /// The group that this one is in; `NONE` for the root group.
    pub(in crate::class::fair) parent: u32,
    /// The group's weight in its parent.
    pub(in crate::class::fair) shares: u32,
    /// The number of levels above the group.
    pub(in crate::class::fair) depth: u32,
    /// The group's name to the policy.
    pub(in crate::class::fair) id: GroupId,
    /// The sum of the contributions of the group's queues, by which its shares are divided among
    /// CPUs.
    pub load: u64,
}

/// The state of a group's queue on a CPU, beside the queue itself.
#[derive(Debug)]
pub(crate) struct Place {
    pub cpu: u32,
    pub(in crate::class::fair) group: u32,
    /// The queue that has this queue's entity.
    pub(in crate::class::fair) parent: u32,
    pub(in crate::class::fair) depth: u32,
    /// The queue's contribution to its group's load.
    pub(in crate::class::fair) contribution: u64,
    /// The time of that contribution's last change, in nanoseconds.
    pub(in crate::class::fair) contributed_ns: u64,
    /// The hierarchical load, and the tick in which it was computed.
    pub(in crate::class::fair) h_load: [u64; 2],
    /// The average weight in 3.4.
    pub(in crate::class::fair) window: Window,
    /// True if the queue has tasks that are not delayed.
    pub(in crate::class::fair) runnable: bool,
}

/// The task groups of a run.
#[derive(Debug)]
pub(crate) struct TaskGroups {
    /// Entities with numbers below this are tasks.
    pub(in crate::class::fair) tasks: u32,
    /// Queues with numbers below this are those of CPUs.
    pub(in crate::class::fair) cpus: u32,
    pub(in crate::class::fair) groups: Vec<Group>,
    /// The queue of each group on each CPU, `NONE` before it is needed; by group, then CPU.
    pub(in crate::class::fair) queue_of: Vec<u32>,
    pub(in crate::class::fair) places: Vec<Place>,
    /// For each CPU, the queues of groups that have or had a task there, children first.
    pub(in crate::class::fair) active: Vec<Vec<u32>>,
}

impl TaskGroups {
    pub fn new(specs: &[NewGroup], ids: &[GroupId], tasks: usize, cpus: usize) -> TaskGroups {
        let mut groups: Vec<Group> = Vec::with_capacity(specs.len());
        for (spec, &id) in specs.iter().zip(ids) {
            groups.push(Group {
                parent: spec.parent.map_or(NONE, |p| p as u32),
                shares: spec.shares,
                depth: spec.parent.map_or(1, |p| groups[p].depth + 1),
                id,
                load: 0,
            });
        }
        TaskGroups {
            tasks: tasks as u32,
            cpus: cpus as u32,
            queue_of: vec![NONE; groups.len() * cpus],
            active: vec![Vec::new(); if groups.is_empty() { 0 } else { cpus }],
            groups,
            places: Vec::new(),
        }
    }

    /// Returns the queue of `group` on `cpu`, if it has been made.
    pub(in crate::class::fair) fn find(&self, group: u32, cpu: usize) -> Option<u32> {
        let queue = self.queue_of[group as usize * self.cpus as usize + cpu];
        (queue != NONE).then_some(queue)
    }

    /// Returns whether there are any groups.
    #[inline]
    pub fn any(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Returns the number of groups' queues that have been made.
    pub fn nr_queues(&self) -> usize {
        self.places.len()
    }

    pub(super) fn place(&self, queue: u32) -> &Place {
        &self.places[(queue - self.cpus) as usize]
    }

    pub(super) fn place_mut(&mut self, queue: u32) -> &mut Place {
        &mut self.places[(queue - self.cpus) as usize]
    }

    /// Returns the group of a group's queue.
    pub(super) fn group_of(&self, queue: u32) -> usize {
        self.place(queue).group as usize
    }
}

/// Returns the group of a task, `NONE` for the root group.
pub(crate) fn of_task(spec: &NewTask) -> u32 {
    spec.group.map_or(NONE, |g| g as u32)
}

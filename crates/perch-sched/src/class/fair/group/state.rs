// SPDX-License-Identifier: GPL-2.0-or-later
//! The state of task groups and of their queues.

use perch_policy::GroupId;

use super::window::Window;
use crate::id::{Id, IdVec, QueueId, TaskGroupId};
use crate::setup::{NewGroup, NewTask};

/// The least weight of a group on a CPU (`MIN_SHARES`).
pub(crate) const MIN_SHARES: u32 = 2;

/// A task group.
#[derive(Debug)]
pub(crate) struct Group {
    /// The group that this one is in; `None` for the root group.
    pub(in crate::class::fair) parent: Option<TaskGroupId>,
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
    pub cpu: usize,
    pub(in crate::class::fair) group: TaskGroupId,
    /// The queue that has this queue's entity.
    pub(in crate::class::fair) parent: QueueId,
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
    pub(in crate::class::fair) groups: IdVec<TaskGroupId, Group>,
    /// The queue of each group on each CPU, `NONE` before it is needed; by group, then CPU.
    pub(in crate::class::fair) queue_of: Vec<QueueId>,
    pub(in crate::class::fair) places: Vec<Place>,
    /// For each CPU, the queues of groups that have or had a task there, children first.
    pub(in crate::class::fair) active: Vec<Vec<QueueId>>,
    /// True once a task has moved from one group to another.
    pub(in crate::class::fair) moved: bool,
    /// The changes that the policy has still to be told: whether a group has a runnable task on a
    /// CPU.
    pub(in crate::class::fair) told: Vec<(GroupId, usize, bool)>,
}

impl TaskGroups {
    pub fn new(specs: &[NewGroup], ids: &[GroupId], tasks: usize, cpus: usize) -> TaskGroups {
        let mut groups = IdVec::<TaskGroupId, Group>::default();
        for (spec, &id) in specs.iter().zip(ids) {
            let parent = spec.parent.map(TaskGroupId::of);
            groups.push(Group {
                parent,
                shares: spec.shares,
                depth: parent.map_or(1, |p| groups[p].depth + 1),
                id,
                load: 0,
            });
        }
        TaskGroups {
            tasks: tasks as u32,
            cpus: cpus as u32,
            queue_of: vec![QueueId::NONE; groups.len() * cpus],
            active: vec![Vec::new(); if groups.is_empty() { 0 } else { cpus }],
            groups,
            places: Vec::new(),
            moved: false,
            told: Vec::new(),
        }
    }

    /// Where `queue_of` has the queue of a group on a CPU.
    #[inline]
    pub(super) fn slot(&self, group: TaskGroupId, cpu: usize) -> usize {
        group.index() * self.cpus as usize + cpu
    }

    /// The place of a group's queue in `places`; `None` for the queue of a CPU.
    #[inline]
    pub(super) fn place_number(&self, queue: QueueId) -> Option<usize> {
        Some(queue.0.checked_sub(self.cpus)? as usize)
    }

    /// Returns the queue of `group` on `cpu`, if it has been made.
    pub(in crate::class::fair) fn find(&self, group: TaskGroupId, cpu: usize) -> Option<QueueId> {
        let queue = self.queue_of[self.slot(group, cpu)];
        (queue != QueueId::NONE).then_some(queue)
    }

    #[inline]
    pub fn any(&self) -> bool {
        !self.groups.is_empty()
    }

    pub(super) fn place(&self, queue: QueueId) -> &Place {
        &self.places[(queue.0 - self.cpus) as usize]
    }

    pub(super) fn place_mut(&mut self, queue: QueueId) -> &mut Place {
        &mut self.places[(queue.0 - self.cpus) as usize]
    }

    pub(super) fn group_of(&self, queue: QueueId) -> &Group {
        &self.groups[self.place(queue).group]
    }
}

/// Returns the group of a task, `None` for the root group.
pub(crate) fn of_task(spec: &NewTask) -> Option<TaskGroupId> {
    spec.group.map(TaskGroupId::of)
}

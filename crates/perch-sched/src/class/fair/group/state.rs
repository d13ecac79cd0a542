// SPDX-License-Identifier: GPL-2.0-or-later
//! What is kept of task groups and of their queues.

use perch_policy::GroupId;

use super::window::Window;
use crate::setup::{NewGroup, NewTask};

/// No group, no queue, nobody: what stands for it in numbers of 32 bits.
pub const NONE: u32 = u32::MAX;

/// The least that a group weighs on a CPU (`MIN_SHARES`).
pub(crate) const MIN_SHARES: u32 = 2;

/// A task group.
#[derive(Debug)]
pub(crate) struct Group {
    /// The group that it is in; `NONE` for the root group.
    pub(in crate::class::fair) parent: u32,
    /// Its weight there.
    pub(in crate::class::fair) shares: u32,
    /// Levels above it.
    pub(in crate::class::fair) depth: u32,
    /// As the policy knows it.
    pub(in crate::class::fair) id: GroupId,
    /// What its queues contribute, summed: how its shares are divided among CPUs.
    pub load: u64,
}

/// What is kept of a group's queue on a CPU beside the queue itself.
#[derive(Debug)]
pub(crate) struct Place {
    pub cpu: u32,
    pub(in crate::class::fair) group: u32,
    /// The queue in which its entity stands.
    pub(in crate::class::fair) parent: u32,
    pub(in crate::class::fair) depth: u32,
    /// What it contributes to its group's load.
    pub(in crate::class::fair) contribution: u64,
    /// When that was last changed, nanoseconds.
    pub(in crate::class::fair) contributed_ns: u64,
    /// Hierarchical load, and the tick in which it was worked out.
    pub(in crate::class::fair) h_load: [u64; 2],
    /// 3.4's average.
    pub(in crate::class::fair) window: Window,
    /// It has tasks that are not asleep.
    pub(in crate::class::fair) runnable: bool,
}

/// The task groups of a run.
#[derive(Debug)]
pub(crate) struct TaskGroups {
    /// Entities below this are tasks.
    pub(in crate::class::fair) tasks: u32,
    /// Queues below this are those of CPUs.
    pub(in crate::class::fair) cpus: u32,
    pub(in crate::class::fair) groups: Vec<Group>,
    /// The queue of a group on a CPU, `NONE` before it is needed; by group, then CPU.
    pub(in crate::class::fair) queue_of: Vec<u32>,
    pub(in crate::class::fair) places: Vec<Place>,
    /// By CPU: the queues of groups that have or had something to do there, children first.
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

    /// The queue of a group on a CPU, if it is there already.
    pub(in crate::class::fair) fn find(&self, group: u32, cpu: usize) -> Option<u32> {
        let queue = self.queue_of[group as usize * self.cpus as usize + cpu];
        (queue != NONE).then_some(queue)
    }

    /// Whether there are any.
    #[inline]
    pub fn any(&self) -> bool {
        !self.groups.is_empty()
    }

    /// How many queues of groups were made.
    pub fn nr_queues(&self) -> usize {
        self.places.len()
    }

    pub(super) fn place(&self, queue: u32) -> &Place {
        &self.places[(queue - self.cpus) as usize]
    }

    pub(super) fn place_mut(&mut self, queue: u32) -> &mut Place {
        &mut self.places[(queue - self.cpus) as usize]
    }

    /// The group of a group's queue.
    pub(super) fn group_of(&self, queue: u32) -> usize {
        self.place(queue).group as usize
    }
}

/// The group of a task, `NONE` for the root group.
pub(crate) fn of_task(spec: &NewTask) -> u32 {
    spec.group.map_or(NONE, |g| g as u32)
}

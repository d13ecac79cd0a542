// SPDX-License-Identifier: GPL-2.0-or-later
//! Task groups (docs/mechanisms/stock.md#groups): a group has, per CPU, a queue of its own and an entity
//! that stands for it in its parent's queue. Read in 3.4, 5.6, 6.1, 6.12 and 7.2.
//!
//! Queues and entities have numbers. The queues of the CPUs come first, then those of groups; the
//! entities of tasks come first, then those of groups, in the order of their queues. A machine
//! without groups is the case in which every walk up ends where it began. Nothing here walks over
//! all groups: a queue is made when a task of its group first comes to its CPU, and what is walked
//! over later are the levels above a task and the groups that are at work on one CPU.

mod levels;
mod load;
mod shares;

use perch_policy::GroupId;

use super::queue::FairQueue;
use crate::class::fair::entity::Entity;
use crate::class::pelt::Average;
use crate::core::Sched;
use crate::core::{NewGroup, NewTask};

pub(crate) use load::Window;

/// No group, no queue, nobody: what stands for it in numbers of 32 bits.
pub const NONE: u32 = u32::MAX;

/// The least that a group weighs on a CPU (`MIN_SHARES`).
pub(crate) const MIN_SHARES: u32 = 2;

/// A task group.
#[derive(Debug)]
pub(crate) struct Group {
    /// The group that it is in; `NONE` for the root group.
    parent: u32,
    /// Its weight there.
    shares: u32,
    /// Levels above it.
    depth: u32,
    /// As the policy knows it.
    id: GroupId,
    /// What its queues contribute, summed: how its shares are divided among CPUs.
    pub load: u64,
}

/// What is kept of a group's queue on a CPU beside the queue itself.
#[derive(Debug)]
pub(crate) struct Place {
    pub cpu: u32,
    group: u32,
    /// The queue in which its entity stands.
    parent: u32,
    depth: u32,
    /// What it contributes to its group's load.
    contribution: u64,
    /// When that was last changed, nanoseconds.
    contributed_ns: u64,
    /// Hierarchical load, and the tick in which it was worked out.
    h_load: [u64; 2],
    /// 3.4's average.
    window: Window,
    /// It has tasks that are not asleep.
    runnable: bool,
}

/// The task groups of a run.
#[derive(Debug)]
pub(crate) struct TaskGroups {
    /// Entities below this are tasks.
    tasks: u32,
    /// Queues below this are those of CPUs.
    cpus: u32,
    groups: Vec<Group>,
    /// The queue of a group on a CPU, `NONE` before it is needed; by group, then CPU.
    queue_of: Vec<u32>,
    places: Vec<Place>,
    /// By CPU: the queues of groups that have or had something to do there, children first.
    active: Vec<Vec<u32>>,
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
    fn find(&self, group: u32, cpu: usize) -> Option<u32> {
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

    fn place(&self, queue: u32) -> &Place {
        &self.places[(queue - self.cpus) as usize]
    }

    fn place_mut(&mut self, queue: u32) -> &mut Place {
        &mut self.places[(queue - self.cpus) as usize]
    }

    /// The group of a group's queue.
    fn group_of(&self, queue: u32) -> usize {
        self.place(queue).group as usize
    }
}

/// The group of a task, `NONE` for the root group.
pub(crate) fn of_task(spec: &NewTask) -> u32 {
    spec.group.map_or(NONE, |g| g as u32)
}

impl Sched<'_> {
    /// A queue.
    #[inline]
    pub(crate) fn queue(&self, queue: u32) -> &FairQueue {
        &self.fair.queues[queue as usize]
    }

    /// See [`Sched::queue`].
    #[inline]
    pub(super) fn queue_mut(&mut self, queue: u32) -> &mut FairQueue {
        &mut self.fair.queues[queue as usize]
    }

    /// The entity of a task or a group's queue.
    #[inline]
    pub(crate) fn entity(&self, entity: u32) -> &Entity {
        &self.fair.entities[entity as usize]
    }

    /// See [`Sched::entity`].
    #[inline]
    pub(super) fn entity_mut(&mut self, entity: u32) -> &mut Entity {
        &mut self.fair.entities[entity as usize]
    }

    /// A queue and an entity that stands in it, or is to.
    #[inline]
    pub(super) fn both_mut(&mut self, queue: u32, entity: u32) -> (&mut FairQueue, &mut Entity) {
        let fair = &mut self.fair.queues[queue as usize];
        (fair, &mut self.fair.entities[entity as usize])
    }

    /// The queue above a group's queue, and the entity that stands for it there; `None` for the
    /// queue of a CPU.
    #[inline]
    pub(crate) fn above(&self, queue: u32) -> Option<(u32, u32)> {
        let i = queue.checked_sub(self.fair.groups.cpus)?;
        let parent = self.fair.groups.places[i as usize].parent;
        Some((parent, self.fair.groups.tasks + i))
    }

    /// The queue that an entity stands for, if it is a group's.
    #[inline]
    pub(crate) fn below(&self, entity: u32) -> Option<u32> {
        let i = entity.checked_sub(self.fair.groups.tasks)?;
        Some(self.fair.groups.cpus + i)
    }

    /// The CPU of a queue.
    #[inline]
    pub(super) fn cpu_of(&self, queue: u32) -> usize {
        match queue.checked_sub(self.fair.groups.cpus) {
            None => queue as usize,
            Some(i) => self.fair.groups.places[i as usize].cpu as usize,
        }
    }

    /// The queue in which a task stands, or stood last.
    #[inline]
    pub(super) fn queue_of(&self, task: u32) -> u32 {
        let t = &self.tasks[task as usize];
        match t.group {
            NONE => t.cpu,
            group => {
                let at = group as usize * self.fair.groups.cpus as usize + t.cpu as usize;
                self.fair.groups.queue_of[at]
            }
        }
    }

    /// The queue that a task enters on a CPU; made if it is the first of its group there.
    #[inline]
    pub(super) fn queue_on(&mut self, task: u32, cpu: usize) -> u32 {
        match self.tasks[task as usize].group {
            NONE => cpu as u32,
            group => self.group_queue(group, cpu),
        }
    }

    #[cold]
    fn group_queue(&mut self, group: u32, cpu: usize) -> u32 {
        if let Some(queue) = self.fair.groups.find(group, cpu) {
            return queue;
        }
        let Group { parent, depth, .. } = self.fair.groups.groups[group as usize];
        let parent = match parent {
            NONE => cpu as u32,
            above => self.group_queue(above, cpu),
        };
        // Averages of queues and of who stands in them move in step.
        let mut average = Average::default();
        average.align(&self.queue(parent).average);
        let queue = self.fair.queues.len() as u32;
        self.fair.queues.push(FairQueue {
            average,
            ..FairQueue::default()
        });
        self.fair.entities.push(Entity {
            average,
            attached: true,
            ..Entity::of_weight(MIN_SHARES)
        });
        let groups = &mut self.fair.groups;
        groups.places.push(Place {
            cpu: cpu as u32,
            group,
            parent,
            depth,
            contribution: 0,
            contributed_ns: 0,
            h_load: [0, u64::MAX],
            window: Window::default(),
            runnable: false,
        });
        groups.queue_of[group as usize * groups.cpus as usize + cpu] = queue;
        queue
    }

    /// Lets the balancer know that a group has something to do on a CPU: its averages there are
    /// brought up to date with the CPU's from now on, until nothing is left of them.
    fn activate(&mut self, mut queue: u32) {
        while let Some((parent, _)) = self.above(queue) {
            let cpu = self.cpu_of(queue);
            let groups = &mut self.fair.groups;
            let place = |q: u32| &groups.places[(q - groups.cpus) as usize];
            let deep = |q: u32| (std::cmp::Reverse(place(q).depth), q);
            let Err(at) = groups.active[cpu].binary_search_by_key(&deep(queue), |&q| deep(q))
            else {
                return;
            };
            groups.active[cpu].insert(at, queue);
            queue = parent;
        }
    }

    /// The levels of a task: its queue and itself, then each queue above with the entity of the
    /// one below.
    pub(super) fn level_of(&self, task: u32) -> (u32, u32) {
        (self.queue_of(task), task)
    }

    /// Climbs from two tasks to the entities that stand in the same queue (`find_matching_se`):
    /// that queue and the two.
    #[inline]
    pub(super) fn matching(&self, one: u32, other: u32) -> (u32, u32, u32) {
        match self.fair.groups.any() {
            true => self.matching_levels(one, other),
            false => (self.tasks[one as usize].cpu, one, other),
        }
    }

    #[cold]
    fn matching_levels(&self, one: u32, other: u32) -> (u32, u32, u32) {
        let ((mut q, mut a), (mut r, mut b)) = (self.level_of(one), self.level_of(other));
        while q != r {
            let depth = |queue: u32| match queue.checked_sub(self.fair.groups.cpus) {
                None => 0,
                Some(i) => self.fair.groups.places[i as usize].depth,
            };
            let (deep, shallow) = (depth(q), depth(r));
            if deep >= shallow {
                (q, a) = self.above(q).expect("queues of one CPU meet in its own");
            }
            if shallow >= deep {
                (r, b) = self.above(r).expect("queues of one CPU meet in its own");
            }
        }
        (q, a, b)
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Queues and entities by their numbers, and the way from each to those above and below.

use super::state::{Group, MIN_SHARES, NONE, Place};
use super::window::Window;
use crate::class::fair::entity::Entity;
use crate::class::fair::queue::FairQueue;
use crate::class::fair::state::FairState;
use crate::class::pelt::Average;

impl FairState {
    /// Returns the queue of this number.
    #[inline]
    pub(in crate::class::fair) fn queue(&self, queue: u32) -> &FairQueue {
        &self.queues[queue as usize]
    }

    /// See [`FairState::queue`].
    #[inline]
    pub(in crate::class::fair) fn queue_mut(&mut self, queue: u32) -> &mut FairQueue {
        &mut self.queues[queue as usize]
    }

    /// Returns the entity of this number, a task's or a group's.
    #[inline]
    pub(in crate::class::fair) fn entity(&self, entity: u32) -> &Entity {
        &self.entities[entity as usize]
    }

    /// See [`FairState::entity`].
    #[inline]
    pub(in crate::class::fair) fn entity_mut(&mut self, entity: u32) -> &mut Entity {
        &mut self.entities[entity as usize]
    }

    /// Returns a queue, and an entity that is in it or will be.
    #[inline]
    pub(in crate::class::fair) fn both_mut(
        &mut self,
        queue: u32,
        entity: u32,
    ) -> (&mut FairQueue, &mut Entity) {
        let fair = &mut self.queues[queue as usize];
        (fair, &mut self.entities[entity as usize])
    }

    /// Returns the queue above a group's queue, and the entity that represents the latter there;
    /// `None` for the queue of a CPU.
    #[inline]
    pub(in crate::class::fair) fn above(&self, queue: u32) -> Option<(u32, u32)> {
        let i = queue.checked_sub(self.groups.cpus)?;
        let parent = self.groups.places[i as usize].parent;
        Some((parent, self.groups.tasks + i))
    }

    /// Returns the queue that an entity represents, if it is a group's.
    #[inline]
    pub(in crate::class::fair) fn below(&self, entity: u32) -> Option<u32> {
        let i = entity.checked_sub(self.groups.tasks)?;
        Some(self.groups.cpus + i)
    }

    /// Returns the queue of `group` on `cpu`, `NONE` before it is needed.
    #[inline]
    pub(in crate::class::fair) fn queue_at(&self, group: u32, cpu: u32) -> u32 {
        match group {
            NONE => cpu,
            group => {
                self.groups.queue_of[group as usize * self.groups.cpus as usize + cpu as usize]
            }
        }
    }

    /// Returns the CPU of a queue.
    #[inline]
    pub(in crate::class::fair) fn cpu_of(&self, queue: u32) -> usize {
        match queue.checked_sub(self.groups.cpus) {
            None => queue as usize,
            Some(i) => self.groups.places[i as usize].cpu as usize,
        }
    }

    #[cold]
    pub(in crate::class::fair) fn group_queue(&mut self, group: u32, cpu: usize) -> u32 {
        if let Some(queue) = self.groups.find(group, cpu) {
            return queue;
        }
        let Group { parent, depth, .. } = self.groups.groups[group as usize];
        let parent = match parent {
            NONE => cpu as u32,
            above => self.group_queue(above, cpu),
        };
        // The averages of a queue and of the entities in it move in step.
        let mut average = Average::default();
        average.align(&self.queue(parent).average);
        let queue = self.queues.len() as u32;
        self.queues.push(FairQueue {
            average,
            ..FairQueue::default()
        });
        self.entities.push(Entity {
            average,
            attached: true,
            ..Entity::of_weight(MIN_SHARES)
        });
        let groups = &mut self.groups;
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

    /// Notes that a group has a task on a CPU. The averages of its queue there are updated with the
    /// CPU's from now on, until they have decayed to nothing.
    pub(super) fn activate(&mut self, mut queue: u32) {
        while let Some((parent, _)) = self.above(queue) {
            let cpu = self.cpu_of(queue);
            let groups = &mut self.groups;
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

    /// Climbs from two entities, each given with the queue that it is in, to the two above them
    /// that are in the same queue (`find_matching_se`). Returns that queue and those two.
    #[cold]
    pub(in crate::class::fair) fn meet(
        &self,
        one: (u32, u32),
        other: (u32, u32),
    ) -> (u32, u32, u32) {
        let ((mut q, mut a), (mut r, mut b)) = (one, other);
        while q != r {
            let depth = |queue: u32| match queue.checked_sub(self.groups.cpus) {
                None => 0,
                Some(i) => self.groups.places[i as usize].depth,
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

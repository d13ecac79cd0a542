// SPDX-License-Identifier: GPL-2.0-or-later
//! Queues and entities by their numbers, and the way from each to those above and below.

use super::state::{Group, MIN_SHARES, Place};
use super::window::Window;
use crate::class::fair::entity::{Entity, Owner};
use crate::class::fair::queue::FairQueue;
use crate::class::fair::state::FairState;
use crate::class::pelt::Average;
use crate::id::{EntityId, Id, QueueId, TaskGroupId, TaskId};

impl FairState {
    /// Returns the queue of this number.
    #[inline]
    pub(in crate::class::fair) fn queue(&self, queue: QueueId) -> &FairQueue {
        &self.queues[queue]
    }

    /// See [`FairState::queue`].
    #[inline]
    pub(in crate::class::fair) fn queue_mut(&mut self, queue: QueueId) -> &mut FairQueue {
        &mut self.queues[queue]
    }

    /// Returns the entity of this number, a task's or a group's.
    #[inline]
    pub(in crate::class::fair) fn entity(&self, entity: EntityId) -> &Entity {
        &self.entities[entity]
    }

    /// See [`FairState::entity`].
    #[inline]
    pub(in crate::class::fair) fn entity_mut(&mut self, entity: EntityId) -> &mut Entity {
        &mut self.entities[entity]
    }

    /// The queue of a CPU. It is looked up by the CPU's number: to make a name of 32 bits first is an
    /// instruction more each time, which was 0.3 % of a run on 1024 CPUs.
    #[inline]
    pub(in crate::class::fair) fn cpu_queue(&self, cpu: usize) -> &FairQueue {
        self.queues.at(cpu)
    }

    /// See [`FairState::cpu_queue`].
    #[inline]
    pub(in crate::class::fair) fn cpu_queue_mut(&mut self, cpu: usize) -> &mut FairQueue {
        self.queues.at_mut(cpu)
    }

    #[inline]
    pub(in crate::class::fair) fn entity_of(&self, task: TaskId) -> &Entity {
        &self.entities[EntityId::of_task(task)]
    }

    /// See [`FairState::entity_of`].
    #[inline]
    pub(in crate::class::fair) fn entity_of_mut(&mut self, task: TaskId) -> &mut Entity {
        &mut self.entities[EntityId::of_task(task)]
    }

    /// Returns a queue, and an entity that is in it or will be.
    #[inline]
    pub(in crate::class::fair) fn both_mut(
        &mut self,
        queue: QueueId,
        entity: EntityId,
    ) -> (&mut FairQueue, &mut Entity) {
        let fair = &mut self.queues[queue];
        (fair, &mut self.entities[entity])
    }

    /// Returns the queue above a group's queue, and the entity that represents the latter there;
    /// `None` for the queue of a CPU.
    #[inline]
    pub(in crate::class::fair) fn above(&self, queue: QueueId) -> Option<(QueueId, EntityId)> {
        let i = self.groups.place_number(queue)?;
        let parent = self.groups.places[i].parent;
        Some((parent, EntityId(self.groups.tasks + i as u32)))
    }

    /// The task, or the queue of a group, that an entity stands for.
    #[inline]
    pub(in crate::class::fair) fn owner(&self, entity: EntityId) -> Owner {
        match entity.0.checked_sub(self.groups.tasks) {
            None => Owner::Task(TaskId(entity.0)),
            Some(i) => Owner::Group(QueueId(self.groups.cpus + i)),
        }
    }

    /// Returns the queue of `group` on `cpu`, `NONE` before it is needed.
    #[inline]
    pub(in crate::class::fair) fn queue_at(
        &self,
        group: Option<TaskGroupId>,
        cpu: usize,
    ) -> QueueId {
        match group {
            None => QueueId::of_cpu(cpu),
            Some(group) => self.groups.queue_of[self.groups.slot(group, cpu)],
        }
    }

    #[inline]
    pub(in crate::class::fair) fn cpu_of(&self, queue: QueueId) -> usize {
        match self.groups.place_number(queue) {
            None => queue.index(),
            Some(i) => self.groups.places[i].cpu,
        }
    }

    #[cold]
    pub(in crate::class::fair) fn group_queue(
        &mut self,
        group: TaskGroupId,
        cpu: usize,
    ) -> QueueId {
        if let Some(queue) = self.groups.find(group, cpu) {
            return queue;
        }
        let Group { parent, depth, .. } = self.groups.groups[group];
        let parent = match parent {
            None => QueueId::of_cpu(cpu),
            Some(above) => self.group_queue(above, cpu),
        };
        // The averages of a queue and of the entities in it move in step.
        let mut average = Average::default();
        average.align(&self.queue(parent).average);
        let queue = self.queues.push(FairQueue { average, ..FairQueue::default() });
        self.entities.push(Entity { average, attached: true, ..Entity::of_weight(MIN_SHARES) });
        let groups = &mut self.groups;
        groups.places.push(Place {
            cpu,
            group,
            parent,
            depth,
            contribution: 0,
            contributed_ns: 0,
            h_load: [0, u64::MAX],
            window: Window::default(),
            runnable: false,
        });
        let slot = groups.slot(group, cpu);
        groups.queue_of[slot] = queue;
        queue
    }

    /// Notes that a group has a task on a CPU. The averages of its queue there are updated with the
    /// CPU's from now on, until they have decayed to nothing.
    pub(super) fn activate(&mut self, mut queue: QueueId) {
        while let Some((parent, _)) = self.above(queue) {
            let cpu = self.cpu_of(queue);
            let groups = &mut self.groups;
            let deep = |q: QueueId| (std::cmp::Reverse(groups.place(q).depth), q);
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
        one: (QueueId, EntityId),
        other: (QueueId, EntityId),
    ) -> (QueueId, EntityId, EntityId) {
        let ((mut q, mut a), (mut r, mut b)) = (one, other);
        while q != r {
            let depth = |queue: QueueId| {
                let place = self.groups.place_number(queue);
                place.map_or(0, |i| self.groups.places[i].depth)
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

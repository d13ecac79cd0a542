// SPDX-License-Identifier: GPL-2.0-or-later
//! A task's place among the queues of its CPU and its groups.

use crate::class::RunQueues;
use crate::id::{EntityId, QueueId, TaskId};

impl RunQueues {
    /// Returns the queue that `task` is in, or was in last.
    #[inline]
    pub(super) fn queue_of(&self, task: TaskId) -> QueueId {
        let t = &self.tasks[task];
        self.fair.queue_at(t.group, t.cpu)
    }

    /// Returns the queue that `task` enters on `cpu`, and makes it if no task of its group has been
    /// there yet.
    #[inline]
    pub(super) fn queue_on(&mut self, task: TaskId, cpu: usize) -> QueueId {
        match self.tasks[task].group {
            None => QueueId::of_cpu(cpu),
            Some(group) => self.fair.group_queue(group, cpu),
        }
    }

    /// Returns the lowest level of `task`: its queue, and its own entity. Each further level is the
    /// queue above, with the entity of the queue below.
    pub(super) fn level_of(&self, task: TaskId) -> (QueueId, EntityId) {
        (self.queue_of(task), EntityId::of_task(task))
    }

    /// Climbs from two tasks to their entities in the first queue that has both
    /// (`find_matching_se`). Returns that queue and the two entities.
    #[inline]
    pub(super) fn matching(&self, one: TaskId, other: TaskId) -> (QueueId, EntityId, EntityId) {
        if self.fair.groups.any() {
            self.fair.meet(self.level_of(one), self.level_of(other))
        } else {
            (QueueId::of_cpu(self.tasks[one].cpu), EntityId::of_task(one), EntityId::of_task(other))
        }
    }
}

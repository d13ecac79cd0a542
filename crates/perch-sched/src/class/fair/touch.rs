// SPDX-License-Identifier: GPL-2.0-or-later
//! The updates of averages, which come before every change of what they are made of.

use super::group::Moment;
use crate::class::RunQueues;
use crate::class::pelt::Activity;
use crate::core::Life;
use crate::id::{EntityId, Id, QueueId, TaskId};

impl RunQueues {
    /// Updates the averages of a CPU's queue. The caller does so before anything in the queue
    /// changes.
    pub(in crate::class) fn touch_queue(&mut self, cpu: usize) {
        let (c, fair) = (&mut self.cpus[cpu], self.fair.cpu_queue_mut(cpu));
        let now = c.pelt.read(self.now);
        if fair.removed != [0; 3] {
            fair.average.remove(std::mem::take(&mut fair.removed));
        }
        if !fair.average.is_due(now) {
            return;
        }
        let did = Activity {
            weight: fair.weight as u32,
            runnable: fair.nr - fair.nr_delayed,
            running: fair.curr != EntityId::NONE,
        };
        fair.average.update(now, did);
    }

    /// Updates a task's averages. The caller does so before the task's life changes.
    pub(super) fn touch_task(&mut self, task: TaskId) {
        let t = &self.tasks[task];
        let now = self.cpus[t.cpu].pelt.read(self.now);
        let running = t.life == Life::Running;
        let awake = running || t.life == Life::Queued;
        let se = self.fair.entity_of_mut(task);
        if !se.average.is_due(now) {
            return;
        }
        let did = Activity {
            weight: if awake || se.delayed { se.weight } else { 0 },
            runnable: (awake && !se.delayed).into(),
            running,
        };
        se.age(now, did);
    }

    /// Updates the averages of a queue and of all above it. The caller does so before anything in
    /// them changes.
    #[inline]
    pub(super) fn touch_levels(&mut self, queue: QueueId) {
        let mut queue = queue;
        if self.fair.above(queue).is_some() {
            queue = self.touch_above(queue);
        }
        self.touch_queue(queue.index());
    }

    #[cold]
    fn touch_above(&mut self, mut queue: QueueId) -> QueueId {
        let now = self.moment_on(self.fair.cpu_of(queue));
        while let Some((parent, entity)) = self.fair.above(queue) {
            self.fair.touch_group(queue, entity, now);
            queue = parent;
        }
        queue
    }

    /// Updates, for a balancing CPU, the averages of all groups that have or had a task there, and
    /// forgets the groups whose averages have decayed to nothing (`update_blocked_averages`,
    /// `update_shares`). Then updates those of the CPU's queue.
    pub(crate) fn touch_active(&mut self, cpu: usize) {
        if self.fair.groups.any() {
            let now = self.moment_on(cpu);
            self.fair.touch_groups(cpu, now);
        }
        self.touch_queue(cpu);
    }

    fn moment_on(&self, cpu: usize) -> Moment {
        Moment { ns: self.now, pelt_ns: self.cpus[cpu].pelt.read(self.now) }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The accounting of the time that a task of the fair class runs.

use super::{cfs, eevdf};
use crate::class::RunQueues;
use crate::era::FairRules;
use crate::id::{EntityId, QueueId, TaskId};

impl RunQueues {
    /// Charges the running task, and the groups above it, the time since the last accounting.
    #[inline]
    pub(in crate::class) fn account_fair(&mut self, cpu: usize, task: TaskId) {
        if self.tasks[task].group.is_none() {
            self.update_level(cpu, QueueId::of_cpu(cpu), EntityId::of_task(task));
        } else {
            self.update_levels(cpu, task);
        }
    }

    #[cold]
    fn update_levels(&mut self, cpu: usize, task: TaskId) {
        let (mut queue, mut entity) = self.level_of(task);
        while self.update_level(cpu, queue, entity)
            && let Some(above) = self.fair.above(queue)
        {
            (queue, entity) = above;
        }
    }

    /// Charges the running entity of a queue the time since the last accounting. Returns whether
    /// there was any.
    #[inline(always)]
    fn update_level(&mut self, cpu: usize, queue: QueueId, entity: EntityId) -> bool {
        let (now, rules) = (self.now, self.rules.fair);
        let (fair, se) = self.fair.both_mut(queue, entity);
        let delta = se.run.account(now);
        if delta == 0 {
            return false;
        }
        se.vruntime += cfs::virtual_ns(delta, se.weight);
        match rules {
            FairRules::Cfs { .. } => cfs::update_floor(fair, Some(se.vruntime)),
            FairRules::Eevdf { slice_ns } => {
                eevdf::update_floor(fair, Some(se));
                if eevdf::renew_deadline(se, slice_ns) && fair.entities > 1 {
                    self.cpus[cpu].need_resched = true;
                }
            }
        }
        true
    }
}

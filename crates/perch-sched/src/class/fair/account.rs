// SPDX-License-Identifier: GPL-2.0-or-later
//! The accounting of the time that a task of the fair class runs.

use super::{NONE, cfs, eevdf};
use crate::core::Sched;
use crate::era::FairRules;

impl Sched<'_> {
    /// Charges the running task, and the groups above it, the time since the last accounting.
    #[inline]
    pub(in crate::class) fn account_fair(&mut self, cpu: usize, task: u32) {
        if self.tasks[task as usize].group == NONE {
            self.update_level(cpu, cpu as u32, task);
        } else {
            self.update_levels(cpu, task);
        }
    }

    #[cold]
    fn update_levels(&mut self, cpu: usize, task: u32) {
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
    fn update_level(&mut self, cpu: usize, queue: u32, entity: u32) -> bool {
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

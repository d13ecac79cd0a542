// SPDX-License-Identifier: GPL-2.0-or-later
//! The tasks that wait on a CPU, as the balancer sees and takes them.

use super::{NONE, cfs};
use crate::core::{Life, Sched};
use crate::era::FairRules;

impl Sched<'_> {
    /// Shows `look` every task that waits on `cpu`, until it returns false. Returns whether it
    /// never did.
    pub(crate) fn each_waiting(&self, cpu: usize, look: &mut dyn FnMut(u32) -> bool) -> bool {
        self.each_waiting_in(cpu as u32, look)
    }

    fn each_waiting_in(&self, queue: u32, look: &mut dyn FnMut(u32) -> bool) -> bool {
        let fair = self.fair.queue(queue);
        let current = (fair.curr != NONE).then_some(fair.curr);
        let mut entities = fair.timeline.iter().map(|w| w.entity).chain(current);
        entities.all(|entity| match self.fair.below(entity) {
            Some(below) => self.each_waiting_in(below, look),
            None => Some(entity) == current || look(entity),
        })
    }

    /// Returns whether `task` is the next or last buddy of its queue, while `cpu`, to which the
    /// balancer may bring it, has a task. The balancer then takes the task for cache-hot.
    pub(crate) fn is_buddy(&self, cpu: usize, task: u32) -> bool {
        let fair = self.fair.queue(self.queue_of(task));
        let buddy = fair.next_buddy == task || fair.last_buddy == task;
        buddy && self.fair.queues[cpu].nr > 0
    }

    /// Returns the turn at which a walk over waiting tasks begins, see [`Sched::coldest`].
    pub(crate) fn first_turn(&self) -> u64 {
        match self.rules.balance.newest_first {
            true => u64::MAX,
            false => 0,
        }
    }

    /// Returns the waiting task that was enqueued or picked least recently, among those after the
    /// turn `after`, and its turn; in 3.4 the one that was enqueued most recently, among those
    /// before `after`.
    pub(crate) fn coldest(&self, source: usize, after: u64) -> Option<(u64, u32)> {
        let newest = self.rules.balance.newest_first;
        let mut coldest: Option<(u64, u32)> = None;
        self.each_waiting(source, &mut |task| {
            let turn = self.fair.entities[task as usize].turn;
            let next = match newest {
                true => turn < after && coldest.is_none_or(|(than, _)| turn > than),
                false => turn > after && coldest.is_none_or(|(than, _)| turn < than),
            };
            if next {
                coldest = Some((turn, task));
            }
            true
        });
        coldest
    }

    /// Takes a waiting task off its queue, because the balancer brings it to another CPU.
    pub(crate) fn detach_waiting(&mut self, task: u32, from: usize) {
        let queue = self.queue_of(task);
        self.touch_levels(queue);
        self.touch_task(task);
        if let FairRules::Eevdf { slice_ns } = self.rules.fair {
            self.fair.entities[task as usize].vlag = self.fair.lag(queue, task, slice_ns);
        }
        self.fair.remove_waiting(queue, task);
        self.count_wish(from, task, -1);
        self.leave_queue(from, task, false);
        self.tasks[task as usize].life = Life::Waking;
        self.leave_cpu(task);
        if let FairRules::Cfs { .. } = self.rules.fair {
            let current = self.fair.current_in(queue).map(|se| se.vruntime);
            cfs::update_floor(self.fair.queue_mut(queue), current);
        }
    }
}

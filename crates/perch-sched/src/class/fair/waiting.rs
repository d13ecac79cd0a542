// SPDX-License-Identifier: GPL-2.0-or-later
//! The tasks that wait on a CPU, as the balancer sees and takes them.

use perch_policy::Change;

use super::entity::Owner;
use super::{cfs, eevdf};
use crate::class::RunQueues;
use crate::core::Life;
use crate::era::FairRules;
use crate::id::{EntityId, QueueId, TaskId};

impl RunQueues {
    /// Shows `look` every task that waits on `cpu`, until it returns false. Returns whether it
    /// never did.
    pub(crate) fn each_waiting(&self, cpu: usize, look: &mut dyn FnMut(TaskId) -> bool) -> bool {
        self.each_waiting_in(QueueId::of_cpu(cpu), look)
    }

    fn each_waiting_in(&self, queue: QueueId, look: &mut dyn FnMut(TaskId) -> bool) -> bool {
        let fair = self.fair.queue(queue);
        let current = (fair.curr != EntityId::NONE).then_some(fair.curr);
        let mut entities = fair.timeline.iter().map(|w| w.entity).chain(current);
        entities.all(|entity| match self.fair.owner(entity) {
            Owner::Group(below) => self.each_waiting_in(below, look),
            Owner::Task(task) => Some(entity) == current || look(task),
        })
    }

    /// Returns whether `task` is the next or last buddy of its queue, while `cpu`, to which the
    /// balancer may bring it, has a task. The balancer then takes the task for cache-hot.
    pub(crate) fn is_buddy(&self, cpu: usize, task: TaskId) -> bool {
        let (queue, entity) = self.level_of(task);
        let fair = self.fair.queue(queue);
        let buddy = fair.next_buddy == entity || fair.last_buddy == entity;
        buddy && self.fair.cpu_queue(cpu).nr > 0
    }

    /// Returns whether the waiting `task` owes time on its CPU while `cpu`, to which the balancer may
    /// bring it, has tasks of its group. It would wait there too (`task_is_ineligible_on_dst_cpu`).
    pub(crate) fn owes_time(&self, task: TaskId, cpu: usize) -> bool {
        if !self.rules.has(Change::EligibleFirst) {
            return false;
        }
        let there = self.fair.queue_at(self.tasks[task].group, cpu);
        if there == QueueId::NONE || self.fair.queue(there).entities == 0 {
            return false;
        }
        let queue = self.queue_of(task);
        let (fair, current) = (self.fair.queue(queue), self.fair.current_in(queue));
        !eevdf::eligible(fair, current, self.fair.entity_of(task).vruntime)
    }

    /// Marks a delayed task, which the balancer has just brought to `cpu`, as delayed there.
    pub(crate) fn delay_moved(&mut self, cpu: usize, task: TaskId) {
        self.delay(cpu, task);
        self.tasks[task].life = Life::Asleep;
    }

    /// Returns the turn at which a walk over waiting tasks begins, see [`RunQueues::coldest`].
    pub(crate) fn first_turn(&self) -> u64 {
        if self.rules.has(Change::OldestFirst) { 0 } else { u64::MAX }
    }

    /// Returns the waiting task that was enqueued or picked least recently, among those after the
    /// turn `after`, and its turn; in 3.4 the one that was enqueued most recently, among those
    /// before `after`.
    pub(crate) fn coldest(&self, source: usize, after: u64) -> Option<(u64, TaskId)> {
        let newest = !self.rules.has(Change::OldestFirst);
        let mut coldest: Option<(u64, TaskId)> = None;
        self.each_waiting(source, &mut |task| {
            let turn = self.fair.entity_of(task).turn;
            let next = if newest {
                turn < after && coldest.is_none_or(|(than, _)| turn > than)
            } else {
                turn > after && coldest.is_none_or(|(than, _)| turn < than)
            };
            if next {
                coldest = Some((turn, task));
            }
            true
        });
        coldest
    }

    /// Takes a waiting task off its queue, because the balancer brings it to another CPU.
    pub(crate) fn detach_waiting(&mut self, task: TaskId, from: usize) {
        let (queue, entity) = self.level_of(task);
        self.touch_levels(queue);
        self.touch_task(task);
        if let FairRules::Eevdf { .. } = self.rules.fair {
            self.fair.settle_lag(queue, entity);
            let se = self.fair.entity_mut(entity);
            se.deadline -= se.vruntime;
            se.relative = true;
        }
        self.fair.remove_waiting(queue, entity);
        self.leave_queue(from, task, false);
        self.tasks[task].life = Life::Waking;
        self.leave_cpu(task, false);
        if let FairRules::Cfs { .. } = self.rules.fair {
            let current = self.fair.current_in(queue).map(|se| se.vruntime);
            cfs::update_floor(self.fair.queue_mut(queue), current);
        }
    }
}

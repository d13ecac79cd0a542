// SPDX-License-Identifier: GPL-2.0-or-later
//! The division of a group's shares among the CPUs on which it has tasks: by load, and by each CPU
//! from its own view, which is exact for its own part and late for all others
//! (docs/mechanisms/stock.md#groups).

use perch_policy::{Change, Host};

use super::state::MIN_SHARES;
use crate::class::Task;
use crate::class::fair::eevdf;
use crate::class::fair::state::FairState;
use crate::era::FairRules;
use crate::id::{EntityId, IdVec, QueueId, TaskGroupId, TaskId};
use crate::{Violation, hold};

impl FairState {
    /// Updates the weight of a group's entity in the queue above.
    pub(super) fn update_shares(&mut self, queue: QueueId) {
        let Some((parent, entity)) = self.above(queue) else {
            return;
        };
        let fair = self.queue(queue);
        let mut load = fair.weight;
        if !self.rules.by_weight() {
            // A group without tasks keeps its weight, as its entity may stay queued for a while
            // (6.12).
            if load == 0 && self.rules.has(Change::DelayedDequeue) {
                return;
            }
            load = load.max(fair.average.load.into());
        }
        let weight = self.share(queue, load);
        if self.entity(entity).weight != weight {
            self.reweight(parent, entity, weight);
        }
    }

    /// Returns the weight of a group's entity when its queue has the load `load`.
    fn share(&self, queue: QueueId, load: u64) -> u32 {
        let groups = &self.groups;
        let group = groups.group_of(queue);
        let elsewhere = group.load - groups.place(queue).contribution;
        let all = elsewhere + load;
        let shares = u64::from(group.shares);
        (shares * load / all.max(1)).clamp(MIN_SHARES.into(), shares) as u32
    }

    /// Gives a group's entity another weight, whether the entity waits, runs or is not queued. In
    /// EEVDF the entity keeps its lag and the rest of its slice as spans of run time.
    fn reweight(&mut self, queue: QueueId, entity: EntityId, weight: u32) {
        let current = self.current_in(queue).copied();
        let eevdf = matches!(self.rules.fair, FairRules::Eevdf { .. });
        let (fair, se) = self.both_mut(queue, entity);
        let old = std::mem::replace(&mut se.weight, weight);
        let before = se.average;
        se.average.reweigh(old, weight);
        fair.average.detach(&before);
        fair.average.attach(&se.average);
        let scaled = |v: i64| v * i64::from(old) / i64::from(weight);
        if !se.queued {
            se.vlag = scaled(se.vlag);
            return;
        }
        fair.weight = fair.weight + u64::from(weight) - u64::from(old);
        let runs = fair.curr == entity;
        if !eevdf {
            if !runs {
                fair.waiting_weight = fair.waiting_weight + u64::from(weight) - u64::from(old);
                fair.timeline.reweigh(entity, weight);
            }
            return;
        }
        let now = eevdf::virtual_time(fair, current.as_ref());
        let protected = se.vruntime < fair.protected_v;
        se.deadline = now + scaled(se.deadline - now);
        se.vruntime = now - scaled(now - se.vruntime);
        // A group that has just been put may go on with its turn.
        if runs || fair.put == entity {
            fair.protected_v =
                if protected { now + scaled(fair.protected_v - now) } else { se.vruntime };
        }
        if !runs {
            self.remove_waiting(queue, entity);
            self.insert_waiting(queue, entity);
        }
    }

    /// Updates a queue's contribution to its group's load, if it has changed by more than a 64th,
    /// and no more often than the era says (`update_tg_load_avg`).
    pub(super) fn contribute(&mut self, queue: QueueId, now_ns: u64) {
        let load = u64::from(self.queue(queue).average.load);
        let least_ns = self.rules.contribution_ns;
        let place = self.groups.place_mut(queue);
        if now_ns - place.contributed_ns < least_ns {
            return;
        }
        let old = place.contribution;
        if load.abs_diff(old) > old / 64 {
            (place.contribution, place.contributed_ns) = (load, now_ns);
            let group = place.group;
            let sum = &mut self.groups.groups[group].load;
            *sum = *sum + load - old;
        }
    }

    /// Checks that a task that was steered went to a CPU on which its group has no runnable task.
    pub(in crate::class::fair) fn check_steered(
        &self,
        group: Option<TaskGroupId>,
        cpu: usize,
    ) -> Result<(), Violation> {
        let Some(group) = group else {
            return Err(Violation::new("a task of the root group was steered"));
        };
        if let Some(fair) = self.groups.find(group, cpu).map(|q| self.queue(q)) {
            hold!(
                fair.nr <= fair.nr_delayed,
                "steered to cpu {cpu}, where its group has {} tasks",
                fair.nr
            );
        }
        Ok(())
    }

    /// Checks that a group's load is the sum of its queues' contributions, and that no group's
    /// entity weighs more than its shares.
    pub(in crate::class::fair) fn check_shares(
        &self,
        host: &Host,
        tasks: &IdVec<TaskId, Task>,
    ) -> Result<(), Violation> {
        let groups = &self.groups;
        let mut loads: IdVec<TaskGroupId, u64> = groups.groups.iter().map(|_| 0).collect();
        for (place, se) in
            groups.places.iter().zip(self.entities.iter().skip(groups.tasks as usize))
        {
            let id = groups.groups[place.group].id;
            hold!(
                host.is_queued(id, place.cpu) == place.runnable,
                "the policy is wrong about a group on cpu {}",
                place.cpu
            );
            loads[place.group] += place.contribution;
            let shares = groups.groups[place.group].shares;
            hold!(
                (MIN_SHARES..=shares).contains(&se.weight),
                "a group of {shares} shares weighs {}",
                se.weight
            );
        }
        for (number, group) in groups.groups.named() {
            let load = loads[number];
            hold!(group.load == load, "group {number}: load {}, not {load}", group.load);
        }
        // An average remembers the tasks that have moved elsewhere.
        if self.rules.by_weight() && !groups.moved { self.check_windows(tasks) } else { Ok(()) }
    }

    /// 3.4: checks that no queue's average exceeds the weight that the queue would have with all
    /// tasks and groups of its group in it.
    fn check_windows(&self, tasks: &IdVec<TaskId, Task>) -> Result<(), Violation> {
        let groups = &self.groups;
        let mut most: IdVec<TaskGroupId, u64> = groups.groups.iter().map(|_| 0).collect();
        for (t, se) in tasks.iter().zip(&self.entities) {
            if let Some(group) = t.group {
                most[group] += u64::from(se.weight);
            }
        }
        for group in &groups.groups {
            if let Some(parent) = group.parent {
                most[parent] += u64::from(group.shares);
            }
        }
        for place in &groups.places {
            let (group, load) = (place.group, place.contribution);
            let (most, cpu) = (most[group], place.cpu);
            hold!(load <= most, "group {group} on cpu {cpu}: load {load} of {most}");
        }
        Ok(())
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The fair class's state that belongs to no single CPU or task.

use perch_policy::GroupId;

use super::entity::Entity;
use super::group::TaskGroups;
use super::queue::FairQueue;
use crate::era::EraRules;
use crate::id::{EntityId, IdVec, QueueId, TaskGroupId};
use crate::setup::NewGroup;

/// The fair class's state: its queues, the entities in them, and the task groups.
pub(crate) struct FairState {
    /// The CPUs' queues, then those of groups on CPUs.
    pub(super) queues: IdVec<QueueId, FairQueue>,
    /// The members of queues: first the tasks (of a real-time task only the run time counts), then
    /// the groups.
    pub(super) entities: IdVec<EntityId, Entity>,
    /// The number of times that any task was enqueued or picked.
    pub(super) turns: u64,
    pub(super) groups: TaskGroups,
    /// For each CPU, the number of times that it picked a task of this class.
    pub(super) choices: Vec<u64>,
    pub(super) rules: EraRules,
    pub(super) tick_ns: u64,
}

impl FairState {
    /// Returns the state with empty queues of `cpus` CPUs. `weights` has the weight of each task,
    /// `groups` the task groups, and `ids` those groups as the policy knows them; `tick_ns` is a
    /// tick's length.
    pub fn new(
        rules: EraRules,
        tick_ns: u64,
        weights: impl Iterator<Item = u32>,
        groups: &[NewGroup],
        ids: &[GroupId],
        cpus: usize,
    ) -> FairState {
        let entities: IdVec<EntityId, Entity> = weights.map(Entity::of_task).collect();
        FairState {
            queues: (0..cpus).map(|_| FairQueue::default()).collect(),
            choices: vec![0; cpus],
            rules,
            tick_ns,
            turns: 0,
            groups: TaskGroups::new(groups, ids, entities.len(), cpus),
            entities,
        }
    }

    /// Notes that a task moves to `group`. Returns the group's name to the policy.
    pub(in crate::class) fn joins(&mut self, group: Option<TaskGroupId>) -> Option<GroupId> {
        self.groups.moved = true;
        group.map(|group| self.groups.groups[group].id)
    }

    /// Returns the figures of the CPU's fair tasks that the policy sees; `capacity` is the most that
    /// the tasks can use.
    #[inline(always)]
    pub(in crate::class) fn shown(&self, cpu: usize, capacity: u32) -> ShownFair {
        let fair = self.cpu_queue(cpu);
        ShownFair {
            nr: fair.nr,
            nr_delayed: fair.nr_delayed,
            load: if self.rules.by_weight() { fair.weight as u32 } else { fair.average.load },
            runnable: fair.average.runnable,
            util: fair.average.util.max(fair.est).min(capacity),
        }
    }
}

/// The part of a CPU's figures that its fair tasks make up, in the words of
/// [`perch_policy::CpuState`].
pub(crate) struct ShownFair {
    pub nr: u32,
    pub nr_delayed: u32,
    pub load: u32,
    pub runnable: u32,
    pub util: u32,
}

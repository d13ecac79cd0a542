// SPDX-License-Identifier: GPL-2.0-or-later
//! What the fair class keeps.

use perch_policy::GroupId;

use super::entity::Entity;
use super::group::TaskGroups;
use super::queue::FairQueue;
use crate::era::EraRules;
use crate::id::{EntityId, IdVec, QueueId};
use crate::setup::NewGroup;

/// What the fair class knows: its queues, what stands in them, and the task groups.
pub(crate) struct FairState {
    /// The CPUs' queues, then those of groups on CPUs.
    pub(super) queues: IdVec<QueueId, FairQueue>,
    /// What stands in queues: the tasks (of a real-time one only the run time counts), then groups.
    pub(super) entities: IdVec<EntityId, Entity>,
    /// Times that any task was queued or picked.
    pub(super) turns: u64,
    pub(super) groups: TaskGroups,
    /// By CPU, how often it chose a task of this class.
    pub(super) choices: Vec<u64>,
    /// The era's rules.
    pub(super) rules: EraRules,
    pub(super) tick_ns: u64,
    /// 5.5: by CPU, what idle scans of the wakers there cost on average, nanoseconds.
    pub(super) scan_cost_ns: Vec<u64>,
}

impl FairState {
    /// Empty queues of `cpus` CPUs. `weights` has the weight of each task, `groups` the task groups,
    /// and `ids` those groups as the policy knows them; `tick_ns` is a tick's length.
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
            scan_cost_ns: vec![0; cpus],
            choices: vec![0; cpus],
            rules,
            tick_ns,
            turns: 0,
            groups: TaskGroups::new(groups, ids, entities.len(), cpus),
            entities,
        }
    }
}

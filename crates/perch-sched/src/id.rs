// SPDX-License-Identifier: GPL-2.0-or-later
//! Names of what the scheduler keeps in lists.
//!
//! A name is a number of a type of its own, so that a task's number cannot pass for that of the
//! entity or the queue in which the task stands.

pub(crate) use perch_engine::{Id, IdVec, TaskId};

perch_engine::ids! {
    /// A set of CPUs that tasks can be bound to: its place in [`crate::Setup::masks`].
    pub MaskId;
    /// An entity of the fair class: a task, or a group on one CPU. The entities of tasks come first
    /// and have the numbers of their tasks; those of groups follow in the order of their queues.
    pub(crate) EntityId;
    /// A queue of the fair class, of a CPU or of a group on a CPU. The queues of CPUs come first and
    /// have the numbers of their CPUs.
    pub(crate) QueueId;
    /// A task group: its place in [`crate::Setup::groups`].
    pub(crate) TaskGroupId;
}

impl EntityId {
    /// No entity. Queues compare names of entities at every switch and every wake-up, and with a
    /// number that no entity has such a comparison is one instruction.
    pub const NONE: EntityId = EntityId(u32::MAX);

    #[inline]
    pub fn of_task(task: TaskId) -> EntityId {
        EntityId(task.0)
    }
}

impl QueueId {
    /// No queue: that of a group that has never had a task on the CPU.
    pub const NONE: QueueId = QueueId(u32::MAX);

    #[inline]
    pub fn of_cpu(cpu: usize) -> QueueId {
        QueueId(cpu as u32)
    }
}

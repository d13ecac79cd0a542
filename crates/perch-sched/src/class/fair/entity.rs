// SPDX-License-Identifier: GPL-2.0-or-later
//! An entity of the fair class: a task, or a group with what it has on one CPU.

use crate::class::pelt::Average;
use crate::class::run_time::RunTime;
use crate::id::{QueueId, TaskId};

/// A task, or a group on one CPU: what stands in a queue.
#[derive(Clone, Copy, Debug)]
pub struct Entity {
    /// Weight, 1024 at nice 0.
    pub weight: u32,
    /// CFS and EEVDF: weighted run time, nanoseconds; relative to the queue while migrating.
    pub vruntime: i64,
    /// EEVDF: virtual deadline.
    pub deadline: i64,
    /// EEVDF: lag at the last dequeue, virtual nanoseconds; positive when the task is owed time.
    pub vlag: i64,
    /// How long it has run.
    pub run: RunTime,
    /// Its run time when it was last picked, nanoseconds.
    pub picked_sum_ns: u64,
    /// Averages.
    pub average: Average,
    /// Estimated utilisation (util_est): utilisation at the last dequeue, and its slow average.
    pub est_enqueued: u32,
    /// See `est_enqueued`.
    pub est_average: u32,
    /// It stands in a queue or runs from it.
    pub queued: bool,
    /// EEVDF: asleep, but still queued until its lag is gone.
    pub delayed: bool,
    /// Counted in a queue's averages.
    pub attached: bool,
    /// CFS: vruntime counts from the floor of whichever queue the task enters next.
    pub relative: bool,
    /// When, in turns of all tasks, it was last queued or picked: the balancer takes the least
    /// recent first.
    pub turn: u64,
    /// Never queued yet.
    pub new: bool,
}

/// The task or group that an entity stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A task.
    Task(TaskId),
    /// A group on one CPU, by its queue there.
    Group(QueueId),
}

impl Entity {
    /// Of something that has never been queued.
    pub fn of_weight(weight: u32) -> Entity {
        Entity {
            weight,
            vruntime: 0,
            deadline: 0,
            vlag: 0,
            run: RunTime::default(),
            picked_sum_ns: 0,
            average: Average::default(),
            est_enqueued: 0,
            est_average: 0,
            queued: false,
            delayed: false,
            attached: false,
            relative: false,
            turn: 0,
            new: false,
        }
    }

    /// Of a task that has never been queued.
    pub fn of_task(weight: u32) -> Entity {
        Entity {
            relative: true,
            new: true,
            ..Entity::of_weight(weight)
        }
    }

    /// util_est: what the task will probably use when it wakes.
    pub fn est(&self) -> u32 {
        self.est_average.max(self.est_enqueued)
    }
}

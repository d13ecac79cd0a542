// SPDX-License-Identifier: GPL-2.0-or-later
//! An entity of the fair class: a task, or the part of a group that is on one CPU.

use crate::class::pelt::{Activity, Average};
use crate::class::run_time::RunTime;
use crate::id::{QueueId, TaskId};

/// A member of a queue: a task, or a group on one CPU.
#[derive(Clone, Copy, Debug)]
pub struct Entity {
    /// The weight, 1024 at nice 0.
    pub weight: u32,
    /// CFS and EEVDF: the weighted run time, in nanoseconds; relative to the queue's floor while
    /// the entity migrates.
    pub vruntime: i64,
    /// EEVDF: the virtual deadline.
    pub deadline: i64,
    /// EEVDF: the lag at the last dequeue, in virtual nanoseconds; positive when the entity is owed
    /// time.
    pub vlag: i64,
    pub run: RunTime,
    /// The entity's run time at the beginning of its turn, in nanoseconds.
    pub picked_sum_ns: u64,
    /// The entity's PELT averages.
    pub average: Average,
    /// The estimated utilisation (util_est): the utilisation at the last dequeue, and its slow
    /// average.
    pub est_enqueued: u32,
    /// See `est_enqueued`.
    pub est_average: u32,
    /// True if the averages have not changed since the estimate was last updated
    /// (`UTIL_AVG_UNCHANGED`).
    pub est_stays: bool,
    /// True while the entity is in a queue or runs from it.
    pub queued: bool,
    /// EEVDF: true while the task sleeps, but stays queued until its lag is gone.
    pub delayed: bool,
    /// True if the entity is counted in a queue's averages.
    pub attached: bool,
    /// CFS: true if vruntime counts from the floor of the queue that the task enters next,
    /// whichever it is. EEVDF: true if the deadline counts from the vruntime that the task gets
    /// there.
    pub relative: bool,
    /// The number of the enqueue or pick, counted over all tasks, at which the task was last
    /// enqueued or picked. The balancer takes the least recent task first.
    pub turn: u64,
    /// True until the task is first enqueued.
    pub new: bool,
}

/// The task or group that an entity stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Task(TaskId),
    /// A group on one CPU, by its queue there.
    Group(QueueId),
}

impl Entity {
    /// Returns the entity of a group that has never been enqueued.
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
            est_stays: false,
            queued: false,
            delayed: false,
            attached: false,
            relative: false,
            turn: 0,
            new: false,
        }
    }

    /// Returns the entity of a task that has never been enqueued.
    pub fn of_task(weight: u32) -> Entity {
        Entity { relative: true, new: true, ..Entity::of_weight(weight) }
    }

    /// Updates the averages to `now_ns`, by the clock of the CPU where the entity belongs.
    pub fn age(&mut self, now_ns: u64, did: Activity) {
        self.est_stays &= !self.average.update(now_ns, did);
    }

    /// Returns the utilisation that the task will probably have when it wakes up (util_est).
    pub fn est(&self) -> u32 {
        self.est_average.max(self.est_enqueued)
    }
}

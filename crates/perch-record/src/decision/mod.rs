// SPDX-License-Identifier: GPL-2.0-or-later
//! Decisions of a kernel's fair class, with EEVDF, about a queue, and the model's answers to the
//! same questions (docs/recordings.md#every-decision).

mod ask;
mod raw;
mod recorder;

pub(crate) use ask::Model;
pub use ask::{KindTally, Why};
pub(crate) use raw::parse;
pub(crate) use recorder::QueueRecorder;

use serde::{Deserialize, Serialize};

/// The kinds of decisions about a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The pick of the entity that runs next.
    Pick,
    /// The question whether a wakee makes the running entity give way.
    Preempt,
    /// The vruntime and the deadline with which an entity enters a queue.
    Place,
    /// The lag with which an entity leaves a queue, and whether it stays queued for its debt.
    Leave,
}

impl Kind {
    /// All kinds, in the order in which they are shown.
    pub const ALL: [Kind; 4] = [Kind::Pick, Kind::Preempt, Kind::Place, Kind::Leave];

    /// Returns the kind's name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Pick => "pick",
            Kind::Preempt => "preempt",
            Kind::Place => "enqueue",
            Kind::Leave => "dequeue",
        }
    }
}

/// An entity of a queue. Virtual times count from the zero point of the queue's sums.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entity {
    /// The task's id; 0 for a group.
    pub pid: u32,
    /// The weight in the kernel's unit: 1,048,576 at nice 0.
    pub weight: u64,
    /// The vruntime, virtual nanoseconds; 0 where the entity is in no queue.
    pub vruntime: i64,
    /// The virtual deadline; if `relative`, from the vruntime that the entity gets next.
    pub deadline: i64,
    /// The lag with which the entity left a queue last, virtual nanoseconds.
    pub vlag: i64,
    /// The slice that the entity asks for, nanoseconds.
    pub slice_ns: u64,
    /// The vruntime up to which the entity is protected while it runs, if it is.
    pub protected: Option<i64>,
    /// True while the entity sleeps, but stays queued.
    pub delayed: bool,
    /// True if the deadline counts from the vruntime that the entity gets next.
    pub relative: bool,
    /// True for a task that enters its first queue.
    pub new: bool,
    /// True if this or the running task is SCHED_BATCH or SCHED_IDLE.
    pub not_normal: bool,
}

/// A queue as it was when the kernel decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// The entities that wait, by deadline.
    pub waiting: Vec<Entity>,
    /// The entity that runs from this queue.
    pub running: Option<Entity>,
    /// The next buddy, by its place among those that wait.
    pub next: Option<u32>,
    /// True if the entity that runs is the next buddy: a group, one of whose tasks goes to sleep.
    pub next_runs: bool,
    /// The kernel's own sum of weight times vruntime over those that wait, in its own unit.
    pub weighted_v: i64,
    /// The kernel's own sum of their weights, in its own unit.
    pub waiting_weight: u64,
}

/// A question to the fair class, and the kernel's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// See [`Kind::Pick`].
    Pick {
        /// True if the running entity's protection counts.
        protect: bool,
        /// The place of the entity that was picked; `None` for the one that runs.
        picked: Option<u32>,
    },
    /// See [`Kind::Preempt`].
    Preempt {
        /// True if the running entity's protection counts.
        protect: bool,
        /// The wakee's place.
        wakee: u32,
        /// The wakee.
        entity: Entity,
        /// True if the wakee has just been forked.
        forked: bool,
        /// True if the wakee made the running entity give way.
        preempts: bool,
    },
    /// See [`Kind::Place`].
    Place {
        /// The entity before.
        entity: Entity,
        /// The vruntime that it got.
        vruntime: i64,
        /// The deadline that it got.
        deadline: i64,
    },
    /// See [`Kind::Leave`].
    Leave {
        /// The entity before.
        entity: Entity,
        /// True if the entity goes to sleep. A task that ends, stops or freezes does not: it never
        /// stays queued.
        sleeps: bool,
        /// The lag that it got.
        lag: i64,
        /// True if it stays queued.
        stays: bool,
    },
}

/// A decision about a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The time, nanoseconds of the kernel's monotonic clock.
    pub at_ns: u64,
    /// The CPU that decided, which may be another than the queue's.
    pub cpu: u32,
    /// The queue.
    pub queue: Queue,
    /// The question, and the answer.
    pub question: Question,
}

impl Decision {
    /// Returns the decision's kind.
    pub fn kind(&self) -> Kind {
        match self.question {
            Question::Pick { .. } => Kind::Pick,
            Question::Preempt { .. } => Kind::Preempt,
            Question::Place { .. } => Kind::Place,
            Question::Leave { .. } => Kind::Leave,
        }
    }
}

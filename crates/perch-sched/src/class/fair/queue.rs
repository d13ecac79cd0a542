// SPDX-License-Identifier: GPL-2.0-or-later
//! The fair class's queues, of a CPU or of a group on a CPU: the tasks and groups that wait, in the
//! order of the class.
//!
//! They stand in one sorted vector: by vruntime in CFS, by deadline in EEVDF. Queues are short (a
//! handful, rarely hundreds), and a move within a few cache lines beats a tree.

use crate::class::pelt::Average;
use crate::id::EntityId;

/// A waiting task or group.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// vruntime (CFS) or deadline (EEVDF).
    pub key: i64,
    /// vruntime, the key in CFS.
    pub vruntime: i64,
    /// Weight.
    pub weight: u32,
    /// Who: an entity's number, which of a task is its own.
    pub entity: EntityId,
}

/// Waiting entities by key, the earliest first; equals in order of arrival.
#[derive(Debug, Default)]
pub struct Timeline {
    waiting: Vec<Waiting>,
}

impl Timeline {
    /// The first by key.
    pub fn first(&self) -> Option<&Waiting> {
        self.waiting.first()
    }

    /// All, by key.
    pub fn iter(&self) -> std::slice::Iter<'_, Waiting> {
        self.waiting.iter()
    }

    /// Adds an entity behind its equals.
    pub fn insert(&mut self, waiting: Waiting) {
        let at = self.waiting.partition_point(|w| w.key <= waiting.key);
        self.waiting.insert(at, waiting);
    }

    /// Takes an entity out.
    ///
    /// # Panics
    /// When it is not there: the caller's books are wrong.
    pub fn remove(&mut self, entity: EntityId) -> Waiting {
        let at = self.waiting.iter().position(|w| w.entity == entity);
        self.waiting
            .remove(at.expect("who is queued stands in a queue"))
    }

    /// The entry of an entity, if it is there.
    pub fn find(&self, entity: EntityId) -> Option<&Waiting> {
        self.waiting.iter().find(|w| w.entity == entity)
    }

    /// An entity weighs something else, and stays where it is.
    pub fn reweigh(&mut self, entity: EntityId, weight: u32) {
        let mut waiting = self.waiting.iter_mut();
        if let Some(w) = waiting.find(|w| w.entity == entity) {
            w.weight = weight;
        }
    }
}

/// The fair class's part of a CPU's run queue, or a group's queue on a CPU.
#[derive(Debug)]
pub struct FairQueue {
    /// Who waits (the running one is not among them).
    pub timeline: Timeline,
    /// CFS: monotone minimum of vruntime. EEVDF: the zero point of `weighted_v`.
    pub min_vruntime: i64,
    /// EEVDF: sum over who waits of weight times (vruntime - min_vruntime).
    pub weighted_v: i64,
    /// Sum of their weights.
    pub waiting_weight: u64,
    /// Sum of the weights of all in this queue, the running one included.
    pub weight: u64,
    /// Runnable tasks here and in the queues below, the running one and delayed ones included.
    pub nr: u32,
    /// Tasks and groups in this very queue, the running one and delayed ones included.
    pub entities: u32,
    /// EEVDF: of the tasks, delayed.
    pub nr_delayed: u32,
    /// Averages of the queue, its sleeping tasks included.
    pub average: Average,
    /// Sum of the runnable tasks' util_est; only of a CPU's queue, all of its tasks.
    pub est: u32,
    /// CFS: who was preempted by a wakee, preferred at the next pick; `NONE` for nobody.
    pub last_buddy: EntityId,
    /// CFS, and EEVDF for groups: who should run next; `NONE` for nobody.
    pub next_buddy: EntityId,
    /// EEVDF: vruntime up to which the running task is protected from a wakee (run to parity).
    pub protected_v: i64,
    /// The task or group that runs, `NONE` for nobody.
    pub curr: EntityId,
    /// Who ran from it last: a group that is chosen again at once goes on with its turn, and a yield
    /// passes it over.
    pub put: EntityId,
    /// Which of its CPU's choices ended that.
    pub put_at: u64,
}

impl Default for FairQueue {
    fn default() -> FairQueue {
        FairQueue {
            timeline: Timeline::default(),
            min_vruntime: 0,
            weighted_v: 0,
            waiting_weight: 0,
            weight: 0,
            nr: 0,
            entities: 0,
            nr_delayed: 0,
            average: Average::default(),
            est: 0,
            last_buddy: EntityId::NONE,
            next_buddy: EntityId::NONE,
            protected_v: 0,
            curr: EntityId::NONE,
            put: EntityId::NONE,
            put_at: 0,
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The fair class's queues, of a CPU or of a group on a CPU: the tasks and groups that wait, in the
//! order of the class.
//!
//! A queue is one sorted vector: by vruntime in CFS, by deadline in EEVDF. Queues are short (a
//! handful, rarely hundreds), and a move within a few cache lines beats a tree.

use crate::class::pelt::Average;
use crate::id::EntityId;

/// A waiting entity.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// The vruntime (CFS) or the deadline (EEVDF).
    pub key: i64,
    /// The vruntime, which is the key in CFS.
    pub vruntime: i64,
    pub weight: u32,
    /// The entity's number, which for a task is the task's own.
    pub entity: EntityId,
}

/// The waiting entities by key, the earliest first; those with equal keys in order of arrival.
#[derive(Debug, Default)]
pub struct Timeline {
    waiting: Vec<Waiting>,
}

impl Timeline {
    /// Returns the first entity by key.
    pub fn first(&self) -> Option<&Waiting> {
        self.waiting.first()
    }

    /// Returns all entities by key.
    pub fn iter(&self) -> std::slice::Iter<'_, Waiting> {
        self.waiting.iter()
    }

    /// Inserts an entity behind those with an equal key.
    pub fn insert(&mut self, waiting: Waiting) {
        let at = self.waiting.partition_point(|w| w.key <= waiting.key);
        self.waiting.insert(at, waiting);
    }

    /// Takes an entity out.
    ///
    /// # Panics
    /// The entity is not there: the caller's books are wrong.
    pub fn remove(&mut self, entity: EntityId) -> Waiting {
        let at = self.waiting.iter().position(|w| w.entity == entity);
        self.waiting.remove(at.expect("who is queued stands in a queue"))
    }

    /// Returns the entry of an entity, if it is there.
    pub fn find(&self, entity: EntityId) -> Option<&Waiting> {
        self.waiting.iter().find(|w| w.entity == entity)
    }

    /// Changes the weight of an entity, which keeps its place.
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
    /// The waiting entities (the running one is not among them).
    pub timeline: Timeline,
    /// CFS: the monotone minimum of vruntime. EEVDF: the zero point of `weighted_v`.
    pub min_vruntime: i64,
    /// EEVDF: the sum, over the waiting entities, of weight times (vruntime - min_vruntime).
    pub weighted_v: i64,
    /// The sum of the weights of the waiting entities.
    pub waiting_weight: u64,
    /// The sum of the weights of all entities in this queue, the running one included.
    pub weight: u64,
    /// The number of runnable tasks here and in the queues below; the running one and delayed ones
    /// count too.
    pub nr: u32,
    /// The number of tasks and groups in this very queue; the running one and delayed ones count
    /// too.
    pub entities: u32,
    /// EEVDF: the number of delayed tasks among `nr`.
    pub nr_delayed: u32,
    /// The averages of the queue; its sleeping tasks count too.
    pub average: Average,
    /// The load, runnable and utilisation of sleepers that wake-ups have taken to other CPUs. They leave
    /// the averages at the next update (`removed`).
    pub removed: [u32; 3],
    /// True once a sleeper has left so, for the walk over the books.
    pub has_lost: bool,
    /// The sum of the util_est of all runnable tasks of a CPU, kept for the CPU's queue only.
    pub est: u32,
    /// CFS: the entity that a wakee preempted and that is preferred at the next pick; `NONE` if
    /// there is none.
    pub last_buddy: EntityId,
    /// CFS, and EEVDF for groups: the entity that should run next; `NONE` if there is none.
    pub next_buddy: EntityId,
    /// EEVDF: the vruntime up to which the running entity is protected from a wakee (run to
    /// parity).
    pub protected_v: i64,
    /// The entity that runs; `NONE` if there is none.
    pub curr: EntityId,
    /// The entity that ran from this queue last. A group that is picked again at once goes on with
    /// its turn, and a yield passes the entity over.
    pub put: EntityId,
    /// The number of picks that the CPU had made when that entity stopped running; it says whether
    /// the CPU has picked another task since.
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
            removed: [0; 3],
            has_lost: false,
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

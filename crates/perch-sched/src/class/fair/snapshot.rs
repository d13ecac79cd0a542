// SPDX-License-Identifier: GPL-2.0-or-later
//! EEVDF's decisions about one queue, asked from outside: a recorder has seen a queue of a kernel,
//! and the model says what it would have done with it (docs/recordings.md#every-decision).
//!
//! The answers come from the functions by which the simulation decides.

use perch_policy::{Change, Era};

use super::eevdf::{self, Wakes};
use super::entity::Entity;
use super::queue::{FairQueue, Waiting};
use crate::era::{EraRules, FairRules};
use crate::id::{EntityId, TaskId};

/// An entity of a queue as a recorder saw it. Virtual times count from the zero point of the queue's
/// sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// The weight in the kernel's unit: 1,048,576 at nice 0.
    pub weight: u32,
    /// The vruntime, in virtual nanoseconds.
    pub vruntime: i64,
    /// The virtual deadline; if `relative`, it counts from the vruntime.
    pub deadline: i64,
    /// The lag with which the entity left a queue last.
    pub vlag: i64,
    /// The slice that the entity asks for, in nanoseconds.
    pub slice_ns: u64,
    /// The vruntime up to which the entity is protected while it runs.
    pub protected: i64,
    /// True while the entity sleeps, but stays queued.
    pub delayed: bool,
    /// True if the deadline counts from the vruntime that the entity gets next.
    pub relative: bool,
}

impl Member {
    fn entity(&self, rules: &QueueRules) -> Entity {
        Entity {
            vruntime: self.vruntime,
            deadline: self.deadline,
            vlag: self.vlag,
            delayed: self.delayed,
            relative: self.relative,
            queued: true,
            ..Entity::of_weight(rules.weight(self))
        }
    }
}

/// A queue as a recorder saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The waiting entities, by deadline.
    pub waiting: Vec<Member>,
    /// The entity that runs from this queue.
    pub running: Option<Member>,
    /// The next buddy, by its place among those that wait.
    pub next: Option<usize>,
    /// True if the entity that runs is the next buddy.
    pub next_runs: bool,
}

/// The kernel's unit of weight is finer than the model's by so much.
const FINE: u32 = 1024;

/// The rules of an era for queues, as a kernel of so many ticks a second applies them.
#[derive(Clone, Copy, Debug)]
pub struct QueueRules {
    rules: EraRules,
    tick_ns: u64,
}

impl QueueRules {
    /// Returns the rules of an era; `None` if the era has no EEVDF.
    ///
    /// # Panics
    /// Panics when `hz` is 0.
    pub fn new(era: Era, hz: u32) -> Option<QueueRules> {
        let rules = EraRules::new(era, 1);
        matches!(rules.fair, FairRules::Eevdf { .. })
            .then_some(QueueRules { rules, tick_ns: 1_000_000_000 / u64::from(hz) })
    }

    /// Returns a weight with which the queue reckons.
    fn weight(&self, member: &Member) -> u32 {
        if self.rules.has(Change::WholeWeights) {
            member.weight.max(1)
        } else {
            (member.weight / FINE).max(2)
        }
    }

    /// Returns a time that makes of itself and such a weight the virtual time that it is. The
    /// model's unit of weight is 1024 at nice 0, so where weights are in a finer unit, times are too.
    fn time_ns(&self, ns: u64) -> u64 {
        if self.rules.has(Change::WholeWeights) { ns * u64::from(FINE) } else { ns }
    }
}

fn id(place: usize) -> EntityId {
    EntityId::of_task(TaskId(place as u32))
}

impl Snapshot {
    fn queue(&self, rules: &QueueRules) -> FairQueue {
        let mut fair = FairQueue::default();
        for (place, member) in self.waiting.iter().enumerate() {
            let weight = rules.weight(member);
            fair.timeline.insert(Waiting {
                key: member.deadline,
                vruntime: member.vruntime,
                weight,
                entity: id(place),
            });
            fair.waiting_weight += u64::from(weight);
            fair.weighted_v += i64::from(weight) * member.vruntime;
        }
        // The entity that runs has the number behind those that wait.
        let runs = id(self.waiting.len());
        fair.curr = match self.running {
            Some(_) => runs,
            None => EntityId::NONE,
        };
        fair.next_buddy = match self.next {
            _ if self.next_runs => runs,
            next => next.map_or(EntityId::NONE, id),
        };
        fair.protected_v = self.running.map_or(0, |member| member.protected);
        fair
    }

    fn running(&self, rules: &QueueRules) -> Option<Entity> {
        self.running.as_ref().map(|member| member.entity(rules))
    }

    /// Returns the place among those that wait of the entity that runs next; `None` if the running
    /// one goes on. `protect` says that its protection counts, and the next buddy.
    pub fn pick(&self, rules: &QueueRules, protect: bool) -> Option<usize> {
        let mut fair = self.queue(rules);
        if !protect {
            fair.protected_v = i64::MIN;
        }
        let buddy = protect && rules.rules.has(Change::PreemptsAgain);
        let picked = eevdf::pick(&fair, self.running(rules).as_ref(), buddy);
        picked.map(|entity| entity.0 as usize)
    }

    /// Returns whether the arrival of the entity at place `wakee` makes the running one give way.
    /// `forked` says that it never ran.
    ///
    /// # Panics
    /// Panics when no entity runs, or none has that place.
    pub fn preempts(&self, rules: &QueueRules, wakee: usize, forked: bool) -> bool {
        let again = rules.rules.has(Change::PreemptsAgain);
        if again && (forked || self.waiting[wakee].delayed) {
            return false;
        }
        let running = self.running(rules).expect("an entity that runs");
        let mut fair = self.queue(rules);
        let is_delayed = |entity: EntityId| self.waiting[entity.0 as usize].delayed;
        loop {
            match eevdf::wakes(&fair, &running, id(wakee), again, is_delayed) {
                Wakes::Preempts => return true,
                Wakes::Stays => return false,
                Wakes::Leaves(entity) => {
                    let left = fair.timeline.remove(entity);
                    fair.waiting_weight -= u64::from(left.weight);
                    fair.weighted_v -= i64::from(left.weight) * left.vruntime;
                }
            }
        }
    }

    /// Returns the vruntime and the deadline with which an entity enters the queue; `new` says that
    /// it never ran.
    pub fn place(&self, rules: &QueueRules, member: &Member, new: bool) -> (i64, i64) {
        let mut entity = member.entity(rules);
        let (fair, running) = (self.queue(rules), self.running(rules));
        let mean = eevdf::mean(&fair, running.as_ref());
        eevdf::place(mean, &mut entity, rules.time_ns(member.slice_ns), new);
        (entity.vruntime, entity.deadline)
    }

    /// Returns the lag with which an entity leaves the queue, in which it runs or waits, and whether
    /// it stays queued until it has paid what it owes. `sleeps` says that it goes to sleep.
    pub fn leave(&self, rules: &QueueRules, member: &Member, sleeps: bool) -> (i64, bool) {
        let keeps_older_lag = rules.rules.has(Change::KeepsOlderLag);
        let members = self.waiting.iter().chain(&self.running);
        let slice_ns = members.map(|m| m.slice_ns).max().unwrap_or(0);
        let limit_ns = rules.time_ns(rules.rules.lag.ns(slice_ns, rules.tick_ns));
        let (fair, running) = (self.queue(rules), self.running(rules));
        let entity = member.entity(rules);
        let lag = eevdf::settled_lag(&fair, running.as_ref(), &entity, limit_ns, keeps_older_lag);
        let delays = rules.rules.has(Change::DelayedDequeue);
        let stays = delays && sleeps && !member.delayed && lag < 0;
        // Before 7.2 the kernel works the lag of a delayed entity out when that leaves.
        if stays && !keeps_older_lag { (member.vlag, true) } else { (lag, stays) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: u64 = 2_800_000;

    fn member(vruntime: i64, deadline: i64) -> Member {
        Member { weight: 1 << 20, vruntime, deadline, slice_ns: SLICE, ..Member::default() }
    }

    fn rules() -> QueueRules {
        QueueRules::new(Era::V7_2, 250).unwrap()
    }

    #[test]
    fn the_earliest_deadline_that_is_owed_time_is_picked() {
        let queue = Snapshot {
            waiting: vec![member(600, 900), member(-500, 1000), member(-600, 1100)],
            running: Some(member(500, 2000)),
            ..Snapshot::default()
        };
        assert_eq!(queue.pick(&rules(), true), Some(1));
        assert!(queue.preempts(&rules(), 1, false));
        assert!(!queue.preempts(&rules(), 2, false));
        assert!(!queue.preempts(&rules(), 1, true));
    }

    #[test]
    fn the_running_entity_is_protected_while_it_is_owed_time() {
        let mut running = member(-10, 5000);
        running.protected = 5000;
        let queue = Snapshot {
            waiting: vec![member(0, 100), member(10, 200)],
            running: Some(running),
            ..Snapshot::default()
        };
        assert_eq!(queue.pick(&rules(), true), None);
        assert_eq!(queue.pick(&rules(), false), Some(0));
    }

    #[test]
    fn a_delayed_entity_leaves_and_the_wakee_comes_next() {
        let mut delayed = member(-10, 50);
        delayed.delayed = true;
        let queue = Snapshot {
            waiting: vec![delayed, member(-10, 100)],
            running: Some(member(500, 5000)),
            ..Snapshot::default()
        };
        assert!(queue.preempts(&rules(), 1, false));
        let old = QueueRules::new(Era::V6_15, 250).unwrap();
        assert!(!queue.preempts(&old, 1, false));
    }

    #[test]
    fn a_sleeper_leaves_with_its_debt_before_6_12() {
        let queue = Snapshot {
            waiting: vec![member(0, 100)],
            running: Some(member(800, 5000)),
            ..Snapshot::default()
        };
        let leaves = |era: &str| {
            let rules = QueueRules::new(era.parse().unwrap(), 250).unwrap();
            queue.leave(&rules, &queue.running.unwrap(), true)
        };
        assert_eq!(leaves("6.11"), (-400, false));
        assert!(leaves("6.12").1);
    }

    #[test]
    fn lag_comes_back_as_it_left() {
        let queue = Snapshot {
            waiting: vec![member(0, 100)],
            running: Some(member(800, 5000)),
            ..Snapshot::default()
        };
        // The mean is 400.
        let (lag, stays) = queue.leave(&rules(), &queue.running.unwrap(), true);
        assert_eq!((lag, stays), (-400, true));
        let left = Snapshot { running: None, ..queue };
        let mut back = member(0, 0);
        back.vlag = lag;
        // With its own weight the mean moves by as much again.
        assert_eq!(left.place(&rules(), &back, false), (800, 800 + SLICE as i64));
    }
}

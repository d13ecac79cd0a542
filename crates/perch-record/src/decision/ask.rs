// SPDX-License-Identifier: GPL-2.0-or-later
//! The model's answers to recorded questions about queues, and how many agree with the kernel's.

use perch_policy::Era;
use perch_sched::{Member, QueueRules, Snapshot};

use super::{Decision, Entity, Kind, Question};

/// The farthest that an entity may be from its queue's zero point: hours of virtual time.
const MOST_VIRTUAL_NS: u64 = 1 << 43;

/// The weight of a task at nice -20, which no group's part exceeds.
const MOST_WEIGHT: u64 = 88_761 << 10;

/// The most entities that wait in a recorded queue.
const MOST_WAITING: usize = 64;

/// The reasons for which a model's answer differs from the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The answer is right but for a virtual nanosecond: before 7.2 kernels multiply by the inverse of
    /// a weight, which they keep to 32 bits.
    Rounding,
    /// A task is of SCHED_BATCH or SCHED_IDLE, or asks for a slice of its own, which the model does
    /// not have.
    NotModelled,
    /// None of these: the model is wrong.
    Model,
}

impl Why {
    /// All reasons, in the order in which they are shown.
    pub const ALL: [Why; 3] = [Why::Rounding, Why::NotModelled, Why::Model];

    /// Returns the reason's name.
    pub fn name(self) -> &'static str {
        match self {
            Why::Rounding => "rounding",
            Why::NotModelled => "not modelled",
            Why::Model => "model wrong",
        }
    }
}

/// How many decisions of a kind the model makes as the kernel did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindTally {
    /// The number of decisions.
    pub asked: u64,
    /// Those with a choice: more than one entity, or a lag that is not 0.
    pub choice: u64,
    /// The decisions that differ, by reason.
    pub by_why: [u64; Why::ALL.len()],
}

impl KindTally {
    /// Returns the number of decisions that differ.
    pub fn differ(&self) -> u64 {
        self.by_why.iter().sum()
    }

    pub(crate) fn add(&mut self, other: &KindTally) {
        self.asked += other.asked;
        self.choice += other.choice;
        for (sum, more) in self.by_why.iter_mut().zip(other.by_why) {
            *sum += more;
        }
    }
}

pub(crate) type Tallies = [KindTally; Kind::ALL.len()];

/// The model of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Model {
    rules: QueueRules,
}

fn member(entity: &Entity) -> Member {
    Member {
        weight: entity.weight as u32,
        vruntime: entity.vruntime,
        deadline: entity.deadline,
        vlag: entity.vlag,
        slice_ns: entity.slice_ns,
        protected: entity.protected.unwrap_or(i64::MIN),
        delayed: entity.delayed,
        relative: entity.relative,
    }
}

impl Decision {
    fn snapshot(&self) -> Snapshot {
        Snapshot {
            waiting: self.queue.waiting.iter().map(member).collect(),
            running: self.queue.running.as_ref().map(member),
            next: self.queue.next.map(|place| place as usize),
            next_runs: self.queue.next_runs,
        }
    }

    fn entities(&self) -> impl Iterator<Item = &Entity> {
        let queue = &self.queue;
        let subject = self.question.subject();
        queue.waiting.iter().chain(&queue.running).chain(subject)
    }

    /// Returns whether a kernel can have these numbers, and the model's sums of products with them
    /// fit into 64 bits.
    pub(crate) fn is_possible(&self) -> bool {
        let (mut weight, mut farthest) = (0, 0);
        if let Some(subject) = self.question.subject() {
            farthest = subject.vlag.unsigned_abs();
        }
        for e in self.entities() {
            // Before 6.17 the lag of the entity that runs marks whether it is protected.
            let times = [e.vruntime, e.deadline, e.protected.unwrap_or(0)];
            let times = times.map(i64::unsigned_abs).into_iter();
            farthest = times.chain([e.slice_ns, farthest]).max().unwrap_or(0);
            if !(1..=MOST_WEIGHT).contains(&e.weight) {
                return false;
            }
            weight += u128::from(e.weight);
        }
        let waiting = self.queue.waiting.len();
        let mut places = [self.queue.next, self.question.place()].into_iter();
        waiting <= MOST_WAITING
            && places.all(|place| place.is_none_or(|place| (place as usize) < waiting))
            && farthest <= MOST_VIRTUAL_NS
            && weight * u128::from(farthest) < 1 << 62
    }

    /// Returns the reason for which the model's answer is another than the kernel's.
    fn why(&self) -> Why {
        let mut slices = self.entities().map(|entity| entity.slice_ns);
        let slice_ns = slices.next();
        if self.entities().any(|entity| entity.not_normal) || slices.any(|s| Some(s) != slice_ns) {
            Why::NotModelled
        } else {
            Why::Model
        }
    }

    /// Returns the reason for which numbers differ by so much, if they do.
    fn reason<const N: usize>(&self, off: [u64; N]) -> Option<Why> {
        match off.into_iter().max() {
            None | Some(0) => None,
            Some(1) => Some(Why::Rounding),
            Some(_) => Some(self.why()),
        }
    }

    /// Returns whether the answer could have been another.
    fn is_choice(&self) -> bool {
        let others = !self.queue.waiting.is_empty();
        match &self.question {
            Question::Pick { .. } => self.queue.waiting.len() + self.running_ones() > 1,
            Question::Preempt { .. } => true,
            Question::Place { entity, .. } => entity.vlag != 0 || entity.relative,
            Question::Leave { .. } => others,
        }
    }

    fn running_ones(&self) -> usize {
        usize::from(self.queue.running.is_some())
    }
}

impl Question {
    /// Returns the entity that the question is about, if it is about one.
    fn subject(&self) -> Option<&Entity> {
        match self {
            Question::Pick { .. } => None,
            Question::Preempt { entity, .. }
            | Question::Place { entity, .. }
            | Question::Leave { entity, .. } => Some(entity),
        }
    }

    /// Returns the place among those that wait that the question or its answer names.
    fn place(&self) -> Option<u32> {
        match self {
            Question::Pick { picked, .. } => *picked,
            Question::Preempt { wakee, .. } => Some(*wakee),
            Question::Place { .. } | Question::Leave { .. } => None,
        }
    }
}

impl Model {
    /// Returns the model of an era's kernel with so many ticks a second; `None` if the era has no
    /// EEVDF.
    pub fn new(era: Era, hz: u32) -> Option<Model> {
        let rules = QueueRules::new(era, hz.max(1))?;
        Some(Model { rules })
    }

    /// Returns the reason for which the model's answer differs from the kernel's, if it does.
    fn differs(&self, decision: &Decision) -> Option<Why> {
        let mut queue = decision.snapshot();
        let same = match &decision.question {
            Question::Pick { protect, picked } => {
                queue.pick(&self.rules, *protect) == picked.map(|place| place as usize)
            }
            Question::Preempt { protect, wakee, forked, preempts, .. } => {
                if let Some(running) = queue.running.as_mut().filter(|_| !protect) {
                    running.protected = i64::MIN;
                }
                let can = queue.running.is_some();
                can && queue.preempts(&self.rules, *wakee as usize, *forked) == *preempts
            }
            Question::Place { entity, vruntime, deadline } => {
                let got = queue.place(&self.rules, &member(entity), entity.new);
                let off = [got.0.abs_diff(*vruntime), got.1.abs_diff(*deadline)];
                return decision.reason(off);
            }
            Question::Leave { entity, sleeps, lag, stays } => {
                let got = queue.leave(&self.rules, &member(entity), *sleeps);
                if got.1 == *stays {
                    return decision.reason([got.0.abs_diff(*lag)]);
                }
                false
            }
        };
        (!same).then(|| decision.why())
    }

    /// Asks about a decision, and counts the answer. Returns the reason if the answer differs.
    pub fn ask(&self, decision: &Decision, tallies: &mut Tallies) -> Option<Why> {
        let tally = &mut tallies[decision.kind() as usize];
        let why = self.differs(decision);
        tally.asked += 1;
        tally.choice += u64::from(decision.is_choice());
        if let Some(why) = why {
            tally.by_why[why as usize] += 1;
        }
        why
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! A decision as the recorder's programs hand it out: the structures of bpf/decision.h, which
//! scripts/mirrors translates.

#[rustfmt::skip]
#[path = "generated.rs"]
#[allow(missing_docs, non_camel_case_types, dead_code, clippy::all)]
#[allow(clippy::undocumented_unsafe_blocks)]
mod generated;

use generated::{
    RAW_DELAYED, RAW_FORKED, RAW_LEAVE, RAW_MEMBERS, RAW_NEW, RAW_NEXT_RUNS, RAW_NOBODY,
    RAW_NOT_NORMAL, RAW_PICK, RAW_PLACE, RAW_PREEMPT, RAW_PREEMPTED, RAW_PROTECT, RAW_RELATIVE,
    RAW_RUNNING, RAW_RUNS, RAW_SLEEPS, raw_decision as Raw, raw_member as RawMember,
};

use super::{Decision, Entity, Question, Queue};

const HEAD: usize = std::mem::offset_of!(Raw, members);
const MEMBER: usize = size_of::<RawMember>();

/// Reads a record from bytes; returns `None` when there are not as many bytes as the record
/// announces, or when it says something impossible.
pub fn parse(bytes: &[u8]) -> Option<Decision> {
    let members = bytes.get(HEAD..)?;
    if members.len() > RAW_MEMBERS as usize * MEMBER {
        return None;
    }
    let mut whole = [0u8; size_of::<Raw>()];
    whole[..bytes.len()].copy_from_slice(bytes);
    // SAFETY: the structure has only integers in the layout of C, for which any bytes are a valid
    // value; the read is unaligned.
    let raw = unsafe { whole.as_ptr().cast::<Raw>().read_unaligned() };
    let nr = raw.nr_members as usize;
    if nr * MEMBER != members.len() {
        return None;
    }
    let queue = Queue {
        waiting: raw.members[..nr].iter().map(|m| raw.entity(m)).collect(),
        running: raw.is(RAW_RUNNING).then(|| raw.entity(&raw.running)),
        next: raw.place(raw.next)?,
        next_runs: raw.is(RAW_NEXT_RUNS),
        weighted_v: raw.weighted_v,
        waiting_weight: raw.waiting_weight,
    };
    Some(Decision { at_ns: raw.at_ns, cpu: raw.cpu, question: raw.question()?, queue })
}

impl Raw {
    fn is(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Returns a virtual time from the zero point of the queue's sums.
    fn since_zero(&self, time: u64) -> i64 {
        time.wrapping_sub(self.zero_v) as i64
    }

    /// Returns a place among those that wait; `None` if the record says something impossible.
    fn place(&self, place: u32) -> Option<Option<u32>> {
        match place {
            RAW_NOBODY => Some(None),
            _ => (place < self.nr_members).then_some(Some(place)),
        }
    }

    fn entity(&self, member: &RawMember) -> Entity {
        let is = |flag: u32| member.flags & flag != 0;
        Entity {
            pid: member.pid,
            weight: member.weight,
            vruntime: self.since_zero(member.vruntime),
            deadline: if is(RAW_RELATIVE) {
                member.deadline as i64
            } else {
                self.since_zero(member.deadline)
            },
            vlag: member.vlag,
            slice_ns: member.slice_ns,
            protected: (member.protected != 0).then(|| self.since_zero(member.protected)),
            delayed: is(RAW_DELAYED),
            relative: is(RAW_RELATIVE),
            new: is(RAW_NEW),
            not_normal: is(RAW_NOT_NORMAL),
        }
    }

    fn question(&self) -> Option<Question> {
        let subject = self.entity(&self.subject);
        Some(match self.kind {
            RAW_PICK => {
                Question::Pick { protect: self.is(RAW_PROTECT), picked: self.place(self.picked)? }
            }
            RAW_PREEMPT => Question::Preempt {
                protect: self.is(RAW_PROTECT),
                wakee: self.place(self.wakee)??,
                entity: subject,
                forked: self.is(RAW_FORKED),
                preempts: self.is(RAW_PREEMPTED),
            },
            RAW_PLACE => Question::Place {
                entity: Entity {
                    vruntime: 0,
                    deadline: if subject.relative { subject.deadline } else { 0 },
                    protected: None,
                    ..subject
                },
                vruntime: self.since_zero(self.after.vruntime),
                deadline: self.since_zero(self.after.deadline),
            },
            RAW_LEAVE => {
                // The kernel brings the vruntime of the entity that runs up to now before it
                // reckons; what it reckons from otherwise is as it was.
                let now = if self.is(RAW_RUNS) { &self.running } else { &self.subject };
                Question::Leave {
                    entity: Entity { vruntime: self.since_zero(now.vruntime), ..subject },
                    sleeps: self.is(RAW_SLEEPS),
                    lag: self.after.vlag,
                    stays: self.after.flags & RAW_DELAYED != 0 && !subject_delayed(self),
                }
            }
            _ => return None,
        })
    }
}

fn subject_delayed(raw: &Raw) -> bool {
    raw.subject.flags & RAW_DELAYED != 0
}

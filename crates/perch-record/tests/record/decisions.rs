// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of decisions about queues in a file.

use std::sync::Arc;

use perch_machine::library;
use perch_policy::{Era, Modes, Policy, Topology};
use perch_record::format::{Decisions, Footer, Header, Reader, Writer};
use perch_record::{Decision, Entity, Kind, Question, Queue, Why, replay};
use proptest::prelude::*;

const SLICE: u64 = 2_800_000;

fn topology() -> Arc<Topology> {
    Topology::new(&library::load("pixel3").expect("pixel3"))
}

fn file(decisions: &[Decision]) -> Vec<u8> {
    let topology = topology();
    let header = Header { hz: 250, era: "7.2".to_string(), ..Header::default() };
    let (cpus, shared) = (topology.nr_cpus(), topology.nr_shared());
    let mut writer = Writer::new(Vec::new(), header, cpus, shared).expect("memory");
    for decision in decisions {
        writer.decide(decision).expect("memory");
    }
    let footer = Footer { decisions: Some(Decisions::default()), ..Footer::default() };
    let (footer, file) = writer.finish(footer).expect("memory");
    let counts = footer.decisions.expect("those that were written");
    assert_eq!(counts.recorded, decisions.len() as u64);
    file
}

/// Entities as a kernel may have them, and others.
fn entity() -> impl Strategy<Value = Entity> {
    let times = prop_oneof![4 => -20_000_000i64..20_000_000, 1 => any::<i64>()];
    let weight = prop_oneof![4 => 3_072u64..90_000_000, 1 => any::<u64>()];
    let flags = any::<[bool; 4]>();
    (prop::array::uniform3(times), weight, flags, any::<u32>()).prop_map(
        |([vruntime, deadline, vlag], weight, [delayed, relative, new, not_normal], pid)| Entity {
            pid,
            weight,
            vruntime,
            deadline,
            vlag,
            slice_ns: SLICE,
            protected: new.then_some(deadline),
            delayed,
            relative,
            new,
            not_normal,
        },
    )
}

fn question() -> impl Strategy<Value = Question> {
    let place = prop_oneof![4 => 0u32..4, 1 => any::<u32>()];
    (0..4, entity(), place, any::<[bool; 3]>(), any::<[i64; 2]>()).prop_map(
        |(kind, entity, place, [a, b, c], [one, other])| match kind {
            0 => Question::Pick { protect: a, picked: b.then_some(place) },
            1 => Question::Preempt { protect: a, wakee: place, entity, forked: b, preempts: c },
            2 => Question::Place { entity, vruntime: one, deadline: other },
            _ => Question::Leave { entity, sleeps: a, lag: one, stays: b },
        },
    )
}

fn decision() -> impl Strategy<Value = Decision> {
    let queue = (
        prop::collection::vec(entity(), 0..70),
        prop::option::of(entity()),
        prop::option::of(0u32..80),
        any::<(bool, i64, u64)>(),
    );
    (any::<u64>(), any::<u32>(), queue, question()).prop_map(
        |(
            at_ns,
            cpu,
            (waiting, running, next, (next_runs, weighted_v, waiting_weight)),
            question,
        )| {
            Decision {
                at_ns,
                cpu,
                queue: Queue { waiting, running, next, next_runs, weighted_v, waiting_weight },
                question,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A reader reads what was written. Whatever that says, the model answers or is not asked.
    #[test]
    fn decisions_come_back(decisions in prop::collection::vec(decision(), 1..6)) {
        let file = file(&decisions);
        let mut reader = Reader::new(&file[..]).expect("a recording");
        let mut seen = Vec::new();
        while let Some(block) = reader.next_block().expect("whole") {
            seen.extend(block.decisions().map(|one| one.expect("whole")));
        }
        prop_assert_eq!(&seen, &decisions);
        for era in [Era::V6_5, Era::V6_15, Era::V7_2] {
            let mut reader = Reader::new(&file[..]).expect("a recording");
            let model = Policy::new(era, Modes::default());
            let outcome = replay(&mut reader, &topology(), model, None, 1).expect("whole");
            let asked: u64 = outcome.decisions.iter().map(|tally| tally.asked).sum();
            prop_assert_eq!(asked + outcome.unasked, decisions.len() as u64);
            prop_assert!(era != Era::V6_5 || asked == 0);
        }
    }
}

#[test]
fn agreement_is_counted_by_kind_and_reason() {
    let entity = |vruntime, deadline| Entity {
        weight: 1 << 20,
        vruntime,
        deadline,
        slice_ns: SLICE,
        ..Entity::default()
    };
    let queue = Queue {
        waiting: vec![entity(-1_000_000, 1_800_000)],
        running: Some(entity(1_000_000, 3_800_000)),
        ..Queue::default()
    };
    let asked = |question| Decision { at_ns: 1, cpu: 0, queue: queue.clone(), question };
    let preempts = |preempts| Question::Preempt {
        protect: true,
        wakee: 0,
        entity: queue.waiting[0].clone(),
        forked: false,
        preempts,
    };
    // A task without lag enters at the mean, which is 0, and gets a slice from there.
    let placed = |deadline| Question::Place { entity: entity(0, 0), vruntime: 0, deadline };
    let slice = SLICE as i64;
    let questions = [preempts(true), preempts(false), placed(slice), placed(slice - 1), placed(0)];
    let file = file(&questions.map(asked));
    let mut reader = Reader::new(&file[..]).expect("a recording");
    let model = Policy::new(Era::V7_2, Modes::default());
    let outcome = replay(&mut reader, &topology(), model, None, 2).expect("whole");
    let of = |kind: Kind| outcome.decisions[kind as usize];
    let by = |kind, why: Why| of(kind).by_why[why as usize];
    assert_eq!((of(Kind::Preempt).asked, of(Kind::Preempt).differ()), (2, 1));
    assert_eq!(by(Kind::Preempt, Why::Model), 1);
    assert_eq!((of(Kind::Place).asked, of(Kind::Place).differ()), (3, 2));
    assert_eq!(by(Kind::Place, Why::Rounding), 1);
    assert_eq!(by(Kind::Place, Why::Model), 1);
    assert_eq!((of(Kind::Pick).asked, of(Kind::Leave).asked), (0, 0));
}

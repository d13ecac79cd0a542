// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of Perfetto's traces, as the kernel's events are and in the compact form.

use perch_import::{Event, Kind, Name, Options, Origin, State, Weaver, import};
use proptest::prelude::*;

use crate::perfdata::put;
use crate::pftrace::{Message, file};
use crate::random::recording;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn a_trace_gives_what_its_events_give(seed in any::<u64>().no_shrink(), cpus in 1usize..9) {
        let mut events = recording(seed, cpus, 20, 500).events;
        // The compact form has no order between a CPU's switch and its wake-up of one moment.
        events.iter_mut().zip(0..).for_each(|(event, n)| event.at_ns += n);
        let mut weaver = Weaver::new(&Options::default());
        events.iter().for_each(|event| weaver.event(event).expect("few enough"));
        let release = Some("6.1.75-android14".to_string());
        let origin = Origin { tool: "Perfetto", release, cpus: Some(16), lost: 0 };
        let expected = weaver.finish(&origin).expect("a script");
        let path = put("events.pftrace", &file(&events, false));
        prop_assert_eq!(&import(&path, &Options::default()).expect("a script"), &expected);
    }
}

fn switch(at_ns: u64, prev: i32, next: i32) -> Event {
    let name = |pid: i32| Name::new(format!("task {pid}").as_bytes());
    let kind = Kind::Switch {
        prev,
        prev_name: name(prev),
        prev_prio: 120,
        state: State::Asleep,
        next,
        next_prio: 120,
        next_name: name(next),
    };
    let context = perch_import::Context::Task;
    Event { at_ns, cpu: 0, pid: prev, process: None, context, kind }
}

/// Both forms of the same events: of two tasks that take turns.
#[test]
fn the_compact_form_says_the_same() {
    let mut events = vec![switch(10, 0, 7)];
    for round in 0..50 {
        let (at, [this, other]) = (100 * round + 20, if round % 2 == 0 { [7, 8] } else { [8, 7] });
        let name = Name::new(format!("task {other}").as_bytes());
        events.push(Event { kind: Kind::Waking { pid: other, name }, ..switch(at, this, 0) });
        events.push(switch(at + 50, this, other));
    }
    let import = |name, bytes: &[u8]| import(&put(name, bytes), &Options::default()).expect(name);
    let plain = import("plain.pftrace", &file(&events, false));
    let compact = import("compact.pftrace", &file(&events, true));
    assert_eq!(plain, compact);
    assert_eq!((plain.0.tasks.len(), plain.1.wakes), (2, 50));
    assert!(plain.1.not_modelled.is_empty());
}

/// Threads by the process tree and by task_newtask, a fork that two events tell, a name that the
/// switch lacks, and what the workload does not have.
#[test]
fn processes_and_what_is_left_out_are_told() {
    let number = |field, value| Message::default().uint(field, value);
    let event = |at, pid, field, what: Message| number(1, at).uint(2, pid).bytes(field, &what.0);
    let switch = |at, prev, next| {
        let what = number(2, prev).uint(3, 120).uint(4, 1).uint(6, next).uint(7, 120);
        event(at, prev, 4, what)
    };
    let tree = Message::default().bytes(1, &number(1, 7).0);
    let tree = tree.bytes(2, &number(1, 8).uint(3, 7).bytes(2, b"helper").0);
    let bundle = number(1, 0).uint(3, 1);
    let bundle = [
        switch(1000, 0, 7),
        event(1100, 7, 20, number(2, 8)),
        event(1200, 7, 235, number(1, 9).bytes(2, b"thread").uint(3, 0x1_0000)),
        event(1300, 7, 239, number(4, 9).bytes(3, b"thread")),
        event(1400, 7, 114, number(2, 9)),
        event(1500, 7, 13, number(1, 1)),
        event(1500, 7, 13, number(1, 2)),
        event(1500, 7, 4000, number(1, 2)),
        switch(2000, 7, 8),
        switch(3000, 8, 9),
        switch(4000, 9, 0),
    ]
    .iter()
    .fold(bundle, |bundle, event| bundle.bytes(2, &event.0));
    let packets = [(2, &tree), (1, &bundle), (60, &tree), (35, &tree)];
    let trace = packets.iter().fold(Message::default(), |trace, (field, message)| {
        trace.bytes(1, &Message::default().bytes(*field, &message.0).0)
    });
    let (script, summary) =
        import(&put("tree.pftrace", &trace.0), &Options::default()).expect("a script");
    assert_eq!(script.tasks.len(), 3, "{script:?}");
    assert!(script.tasks.iter().all(|task| task.process == script.tasks[0].process));
    assert!(script.tasks.iter().any(|task| task.name == "helper"), "{script:?}");
    assert_eq!(summary.lost, 1);
    let left = summary.left().expect("more than is modelled");
    assert!(left.starts_with("not modelled: 2 cpu_idle, "), "{left}");
    for each in ["1 ftrace event 4000", "1 flags of sched_waking", "1 track_descriptor"] {
        assert!(left.contains(each), "{left}");
    }
    // Each cut, and each changed byte, is refused or read, and a cut within a packet has its place.
    for at in 1..trace.0.len() {
        let path = put("cut.pftrace", &trace.0[..at]);
        if let Err(error) = import(&path, &Options::default()) {
            let error = error.to_string();
            assert!(error.contains("at byte ") || error.contains("it has no"), "{at}: {error}");
        }
        let mut bytes = trace.0.clone();
        bytes[at] ^= 0x84;
        let _ = import(&put("cut.pftrace", &bytes), &Options::default());
    }
}

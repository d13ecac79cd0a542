// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of Perfetto's traces, as the kernel's events are and in the compact form.

use perch_import::{Context, Event, Kind, Name, Options, Origin, State, Weaver, import};
use proptest::prelude::*;

use crate::perfdata::put;
use crate::pftrace::{Message, of_words};
use crate::random::recording;

fn text(name: Name) -> Vec<u8> {
    name.to_string().into_bytes()
}

fn state(state: State) -> u64 {
    match state {
        State::Runnable => 0,
        State::Asleep => 1,
        State::Dead => 0x20,
    }
}

fn flags(context: Context) -> u64 {
    match context {
        Context::Task => 0,
        Context::Softirq => 0x11,
        Context::Interrupt => 0x09,
    }
}

/// An event as it is.
fn event(event: &Event) -> Message {
    let named = |pid: i32, name| Message::default().bytes(1, &text(name)).uint(2, pid as u64);
    let (field, what) = match event.kind {
        Kind::Switch { prev, prev_name, prev_prio, state: left, next, next_prio, next_name } => {
            let what = named(prev, prev_name).uint(3, prev_prio as u64).uint(4, state(left));
            (4, what.bytes(5, &text(next_name)).uint(6, next as u64).uint(7, next_prio as u64))
        }
        Kind::Wakeup { pid, name } => (17, named(pid, name)),
        Kind::Waking { pid, name } => (20, named(pid, name)),
        Kind::WakeupNew { pid, name } => (114, named(pid, name)),
        Kind::Fork { child, name } => {
            (239, Message::default().bytes(3, &text(name)).uint(4, child as u64))
        }
        Kind::Exec => (237, Message::default()),
        Kind::Migrate => (491, Message::default()),
    };
    let head = Message::default().uint(1, event.at_ns).uint(2, event.pid as u64);
    head.uint(5, flags(event.context)).bytes(field, &what.0)
}

/// A bundle of one CPU. In the compact form it has the switches and wake-ups in columns.
fn bundle(cpu: u32, events: &[&Event], compact: bool) -> Message {
    let mut bundle = Message::default().uint(1, cpu.into());
    let mut columns: [Message; 13] = Default::default();
    let mut names = Message::default();
    let (mut last, mut count) = ([0; 13], 0);
    for of in events {
        let (first, row, name) = match of.kind {
            Kind::Switch { state: left, next, next_prio, next_name, .. } if compact => {
                (1, vec![(2, state(left)), (3, next as u64), (4, next_prio as u64)], next_name)
            }
            Kind::Waking { pid, name } if compact => {
                let row = vec![(8, pid as u64), (9, 0), (10, 120), (12, flags(of.context))];
                (7, row, name)
            }
            _ => {
                bundle = bundle.bytes(2, &event(of).0);
                continue;
            }
        };
        let index = if first == 1 { 6 } else { 11 };
        for (column, value) in
            row.into_iter().chain([(first, of.at_ns - last[first]), (index, count)])
        {
            columns[column] = std::mem::take(&mut columns[column]).number(value);
        }
        last[first] = of.at_ns;
        names = names.bytes(5, &text(name));
        count += 1;
    }
    if count > 0 {
        for (field, column) in (0..).zip(&columns).filter(|(_, column)| !column.0.is_empty()) {
            names = names.bytes(field, &column.0);
        }
        bundle = bundle.bytes(4, &names.0);
    }
    bundle
}

/// A trace of these events: in each round the events of one CPU after the other.
fn file(events: &[Event], compact: bool) -> Vec<u8> {
    let utsname = Message::default().bytes(3, b"6.1.75-android14");
    let system = Message::default().bytes(1, &utsname.0).uint(8, 16);
    let mut trace = Message::default().bytes(1, &Message::default().bytes(45, &system.0).0);
    for round in events.chunks(97) {
        for cpu in 0..16 {
            let of: Vec<&Event> = round.iter().filter(|event| event.cpu == cpu).collect();
            if !of.is_empty() {
                let packet = Message::default().bytes(1, &bundle(cpu, &of, compact).0);
                trace = trace.bytes(1, &packet.0);
            }
        }
    }
    trace.0
}

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
    let context = Context::Task;
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
    let trace = of_words(
        "1{ 2{ 1{ 1=7 } 2{ 1=8 3=7 2:helper } } } 1{ 60{ } } 1{ 35{ } } 1{ 1{ 1=0 3=1
        2{ 1=1000 4{ 3=120 4=1 6=7 7=120 } }
        2{ 1=1100 2=7 20{ 2=8 } }
        2{ 1=1200 2=7 235{ 1=9 2:thread 3=65536 } }
        2{ 1=1300 2=7 239{ 4=9 3:thread } }
        2{ 1=1400 2=7 114{ 2=9 } }
        2{ 1=1500 2=7 13{ 1=1 } }
        2{ 1=1500 2=7 13{ 1=2 } }
        2{ 1=1500 2=7 4000{ 1=2 } }
        2{ 1=2000 4{ 2=7 3=120 4=1 6=8 7=120 } }
        2{ 1=3000 4{ 2=8 3=120 4=1 6=9 7=120 } }
        2{ 1=4000 4{ 2=9 3=120 4=1 7=120 } } } }",
    );
    let (script, summary) =
        import(&put("tree.pftrace", &trace), &Options::default()).expect("a script");
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
    for at in 1..trace.len() {
        let path = put("cut.pftrace", &trace[..at]);
        if let Err(error) = import(&path, &Options::default()) {
            let error = error.to_string();
            assert!(error.contains("at byte ") || error.contains("it has no"), "{at}: {error}");
        }
        let mut bytes = trace.clone();
        bytes[at] ^= 0x84;
        let _ = import(&put("cut.pftrace", &bytes), &Options::default());
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests that read a trace back field by field.

use std::collections::BTreeMap;
use std::sync::Arc;

use perch_sim::workload::Workload;
use perch_sim::{Outcome, Scenario};

use super::*;

/// The value of a field.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
    }
    panic!("a number of more than ten bytes");
}

fn fields(mut bytes: &[u8]) -> Vec<(u32, Value<'_>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            VARINT => Value::Number(varint(&mut bytes)),
            FIXED64 => {
                let (number, rest) = bytes.split_at(8);
                bytes = rest;
                Value::Number(u64::from_le_bytes(number.try_into().unwrap()))
            }
            LENGTH => {
                let length = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(value)
            }
            other => panic!("a field of kind {other}"),
        };
        found.push(((key >> 3) as u32, value));
    }
    found
}

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;

fn number(of: &[(u32, Value)], field: u32) -> Option<u64> {
    of.iter().find_map(|(number, value)| match value {
        Value::Number(value) if *number == field => Some(*value),
        _ => None,
    })
}

fn all<'a>(of: &'a [(u32, Value<'a>)], field: u32) -> impl Iterator<Item = &'a [u8]> {
    of.iter().filter_map(move |(number, value)| match value {
        Value::Bytes(bytes) if *number == field => Some(*bytes),
        _ => None,
    })
}

/// Returns packed numbers, which have no fields of their own.
fn packed(of: &[(u32, Value)], field: u32) -> Vec<u64> {
    let mut found = Vec::new();
    for mut bytes in all(of, field) {
        while !bytes.is_empty() {
            found.push(varint(&mut bytes));
        }
    }
    found
}

/// The content of a trace.
#[derive(Default)]
struct Read {
    /// The time that CPUs spent with tasks, nanoseconds.
    busy_ns: u64,
    wakes: u64,
    /// The number of wakings whose waker is not the task that the CPU runs by its switches.
    strange: u64,
    /// The instants of wake-ups by the number of their name, and the number of those that an arrow
    /// leaves.
    begun: Vec<u64>,
    ended: Vec<u64>,
    names: Vec<String>,
    /// The last value of each counter.
    counters: BTreeMap<u64, u64>,
    /// The times of the events of tracks.
    at_ns: Vec<u64>,
    largest_packet: usize,
}

/// The fields of an ftrace bundle and of its compact part.
const CPU: u32 = 1;
const EVENT: u32 = 2;
const COMPACT: u32 = 4;

fn read(trace: &[u8]) -> Read {
    let mut read = Read::default();
    // The task that each CPU runs, and the time since when it does.
    let mut runs: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let (mut now, mut clock) = (0, 0);
    for packet in all(&fields(trace), field::PACKET) {
        read.largest_packet = read.largest_packet.max(packet.len());
        let packet = fields(packet);
        if number(&packet, field::SEQUENCE_ID).is_some() {
            let given = number(&packet, field::TIMESTAMP).unwrap_or(0);
            if number(&packet, field::CLOCK).is_none() {
                clock += given;
            }
            now = match number(&packet, field::CLOCK) {
                None => clock,
                Some(_) => given,
            };
        }
        for bundle in all(&packet, field::FTRACE_EVENTS) {
            let bundle = fields(bundle);
            let cpu = number(&bundle, CPU).unwrap();
            read.wakes += all(&bundle, EVENT).count() as u64;
            for compact in all(&bundle, COMPACT) {
                let compact = fields(compact);
                let names = all(&compact, 5).count() as u64;
                for (at, places) in [(1, 6), (7, 11)] {
                    let places = packed(&compact, places);
                    assert_eq!(places.len(), packed(&compact, at).len());
                    assert!(places.iter().all(|place| *place < names));
                }
                let sums = |field| {
                    let mut sum = 0;
                    let given = packed(&compact, field).into_iter();
                    given
                        .map(|later| {
                            sum += later;
                            sum
                        })
                        .collect::<Vec<u64>>()
                };
                let wakings = sums(7);
                read.wakes += wakings.len() as u64;
                for (at, pid) in sums(1).into_iter().zip(packed(&compact, 3)) {
                    if let Some((since, was)) = runs.insert(cpu, (at, pid)) {
                        read.busy_ns += if was == 0 { 0 } else { at - since };
                    }
                    // A waking before this switch, and at its time, must be in an earlier bundle.
                    read.strange += wakings.iter().filter(|woken| **woken == at).count() as u64;
                }
            }
        }
        for names in all(&packet, field::INTERNED_DATA) {
            for name in all(&fields(names), 2) {
                let name = all(&fields(name), 2).next().unwrap().to_vec();
                read.names.push(String::from_utf8(name).unwrap());
            }
        }
        for event in all(&packet, field::TRACK_EVENT) {
            let event = fields(event);
            let track = number(&event, field::TRACK).unwrap();
            if let Some(value) = number(&event, field::COUNTER) {
                read.counters.insert(track, value);
            }
            read.at_ns.push(now);
            read.begun.extend(number(&event, field::FLOW));
            read.ended.extend(number(&event, field::FLOW_ENDS));
        }
    }
    let idle = |(_, pid): &(u64, u64)| *pid == 0;
    assert!(runs.values().all(idle), "every slice has an end");
    read
}

fn scenario(machine: &str, workload: &str, measure_ns: u64) -> Scenario {
    let machine = Arc::new(perch_machine::resolve(machine).unwrap());
    let workload = Workload::parse(workload, &machine).unwrap();
    Scenario { seed: 7, ..Scenario::plain(machine, workload, measure_ns) }
}

fn traced(scenario: &Scenario) -> (Outcome, Vec<u8>) {
    let mut bytes = Vec::new();
    let names = (0..scenario.workload.tasks.len()).map(|task| format!("task/{task}"));
    let mut trace = PerfettoTrace::new(
        &mut bytes,
        names.collect(),
        scenario.machine.cpus.len(),
        scenario.topology.nr_llcs(),
    )
    .unwrap();
    let outcome = scenario.run_watched(&mut trace).unwrap();
    (outcome, bytes)
}

/// A watcher changes nothing, and sees every event.
#[test]
fn slices_add_up_to_the_time_that_the_metrics_state() {
    for (machine, workload) in [
        ("kunpeng920", "tbench:n=16,where=node0-1"),
        ("juno", "sysbench:threads=12"),
        ("xeon240", "schbench:n=4"),
        ("x5570", "vm:vcpus=8,shares=8192,hogs=4x4,inside=volano:rooms=2,users=4"),
    ] {
        let scenario = scenario(machine, workload, 20_000_000);
        let (outcome, bytes) = traced(&scenario);
        let mut unseen = scenario.run().unwrap();
        // An event that is one without a watcher is several with one.
        unseen.metrics.events = outcome.metrics.events;
        assert_eq!(outcome, unseen, "{workload}");
        let read = read(&bytes);
        assert_eq!(read.busy_ns, outcome.metrics.busy_ns, "{workload}");
        assert!(read.wakes > 50, "{workload}: {} wake-ups", read.wakes);
        assert_eq!(read.begun.len() as u64, read.wakes, "{workload}");
        assert!(read.ended.len() <= read.begun.len());
        assert!(read.ended.iter().all(|number| read.begun.contains(number)));
        assert!(read.at_ns.is_sorted() && read.at_ns.last() <= Some(&20_000_000));
        assert_eq!(read.strange, 0, "{workload}");
        let bytes = bytes.len() as u64 / read.wakes;
        // The names of CPUs and tasks are most of the other bytes.
        assert!(bytes < 200 || !workload.starts_with("tbench"), "{bytes} bytes a wake-up");
        // All CPUs are idle when the run is over.
        assert_eq!(read.counters[&1], scenario.machine.cpus.len() as u64);
        assert!(read.names.contains(&"runs".to_string()), "{:?}", read.names);
    }
}

/// The memory stays bounded: the amount that is written at once does not grow with the run.
#[test]
fn a_longer_run_has_no_larger_packets() {
    let largest = |measure_ns| {
        let (_, bytes) = traced(&scenario("kunpeng920", "tbench:n=4", measure_ns));
        (bytes.len(), read(&bytes).largest_packet)
    };
    let ((short, packet), (long, same)) = (largest(20_000_000), largest(80_000_000));
    assert!(long > 3 * short, "{short} and {long} bytes");
    assert!(same <= packet + packet / 10, "{packet} and {same} bytes");
}

#[test]
fn who_cannot_be_written_to_ends_the_run() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let scenario = scenario("kunpeng920", "tbench:n=16", 50_000_000);
    let names = vec!["task".to_string(); scenario.workload.tasks.len()];
    let cpus = scenario.machine.cpus.len();
    let mut trace = PerfettoTrace::new(Full(100_000), names, cpus, 2).unwrap();
    let error = scenario.run_watched(&mut trace).unwrap_err().to_string();
    assert!(error.contains("no storage space"), "{error}");
}

/// A late packet has its time by the common clock, and does not turn the sequence's clock back.
#[test]
fn a_recording_is_instants_with_arrows_and_what_was_counted() {
    let mut bytes = Vec::new();
    let mut trace = RecordedTrace::new(&mut bytes, 4, 2).unwrap();
    let asked =
        Choice::Asked { cpu: 1, reason: "target idle", target: 1, cause: None, other: None };
    let first = Recorded {
        at_ns: 1_000,
        waker: None,
        this_cpu: 0,
        wakee: 7,
        prev_cpu: 1,
        chosen: 1,
        choice: asked,
        idle: &[(0, 2), (1, 1)],
        runnable: &[],
    };
    trace.wake_up(&first).unwrap();
    let late = Recorded {
        at_ns: 900,
        waker: Some(7),
        this_cpu: 1,
        wakee: 8,
        choice: Choice::Asked {
            cpu: 2,
            reason: "LLC scan",
            target: 1,
            cause: Some("model wrong"),
            other: Some((3, "idle core")),
        },
        idle: &[(0, 2)],
        runnable: &[(1, 5)],
        ..first
    };
    trace.wake_up(&late).unwrap();
    trace
        .wake_up(&Recorded {
            at_ns: 1_100,
            waker: Some(9),
            choice: Choice::NotAsked("real-time"),
            ..first
        })
        .unwrap();
    trace.finish().unwrap();
    let read = read(&bytes);
    // The trace has two counters, a wake-up and the arrow to its wakee; it does not tell the same
    // number of idle CPUs twice.
    assert_eq!(read.at_ns, [1000, 1000, 1000, 1000, 900, 900, 900, 1100, 1100]);
    assert_eq!(read.begun, [1, 1, 2, 2, 3, 3]);
    assert_eq!(read.ended, [1], "the first wakee wakes the second");
    let expected = ["target idle", "put here", "model wrong", "real-time"];
    assert_eq!(read.names, expected);
    let counters: Vec<_> = read.counters.into_iter().collect();
    assert_eq!(counters, [(1, 2), (2, 1), (4, 5)]);
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of perf.data files, in rounds, and of trace.dat files, that the test writes as perf and
//! trace-cmd do: of either byte order.

use std::path::{Path, PathBuf};

use byteorder::{BigEndian, ByteOrder, LittleEndian};
use perch_import::{Context, Event, Kind, Options, Origin, State, Summary, Weaver, import};
use perch_workload::recorded::Script;
use proptest::prelude::*;

use crate::random::recording;
use crate::tracedat::{Dat, Pack, zstd};

const SWITCH: u16 = 300;
const WAKING: u16 = 301;
const NEW: u16 = 302;
const FORK: u16 = 303;
/// Offset of the records.
const DATA: usize = 104 + 2 * (64 + 16) + 2 * 8;

/// A file in one byte order.
struct Writer<T: ByteOrder>(Vec<u8>, std::marker::PhantomData<T>);

impl<T: ByteOrder> Writer<T> {
    fn new() -> Writer<T> {
        Writer(Vec::new(), std::marker::PhantomData)
    }

    fn u16(&mut self, value: u16) {
        let mut bytes = [0; 2];
        T::write_u16(&mut bytes, value);
        self.0.extend_from_slice(&bytes);
    }

    fn u32(&mut self, value: u32) {
        let mut bytes = [0; 4];
        T::write_u32(&mut bytes, value);
        self.0.extend_from_slice(&bytes);
    }

    fn u64(&mut self, value: u64) {
        let mut bytes = [0; 8];
        T::write_u64(&mut bytes, value);
        self.0.extend_from_slice(&bytes);
    }

    fn head(&mut self, kind: u32, size: u16) {
        self.u32(kind);
        self.u16(0);
        self.u16(size);
    }

    /// The attributes of one of the two events.
    fn attr(&mut self, id: u64) {
        self.u32(2);
        self.u32(64);
        self.u64(300 + id);
        self.u64(1);
        // The attributes ask for number, thread, time, CPU and the tracepoint's bytes.
        self.u64(1 << 16 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 10);
        self.u64(0);
        self.u64(1 << 18);
        [0u64, 0].iter().for_each(|&value| self.u64(value));
    }

    fn name(&mut self) {
        self.0.extend_from_slice(b"t\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    }

    /// Returns a tracepoint's own bytes.
    fn raw(event: &Event) -> Vec<u8> {
        let mut raw = Writer::<T>::new();
        let (id, fields): (u16, Vec<i32>) = match event.kind {
            Kind::Switch { prev, prev_prio, state, next, next_prio, .. } => {
                let state = match state {
                    State::Runnable => 0x100,
                    State::Asleep => 1,
                    State::Dead => 0x20,
                };
                (SWITCH, vec![prev, prev_prio, state, next, next_prio])
            }
            Kind::Waking { pid, .. } => (WAKING, vec![pid]),
            Kind::WakeupNew { pid, .. } => (NEW, vec![pid]),
            Kind::Fork { child, .. } => (FORK, vec![child]),
            other => panic!("no such event is made here: {other:?}"),
        };
        raw.u16(id);
        let flags = match event.context {
            Context::Task => 1,
            Context::Softirq => 0x11,
            Context::Interrupt => 0x19,
        };
        raw.0.extend_from_slice(&[flags, 0]);
        raw.u32(event.pid as u32);
        raw.name();
        fields.iter().for_each(|field| raw.u32(*field as u32));
        raw.0
    }

    fn sample(&mut self, event: &Event) {
        let mut raw = Self::raw(event);
        while raw.len() % 8 != 4 {
            raw.push(0);
        }
        self.u32(9);
        self.u16(1);
        self.u16((8 + 8 + 8 + 8 + 8 + 4 + raw.len()) as u16);
        self.u64(77);
        self.u32(event.pid as u32);
        self.u32(event.pid as u32);
        self.u64(1_000_000 + event.at_ns);
        self.u32(event.cpu);
        self.u32(0);
        self.u32(raw.len() as u32);
        self.0.extend_from_slice(&raw);
    }

    fn formats(&mut self) {
        let field = |name: &str, offset, size| {
            format!("\tfield:int {name};\toffset:{offset};\tsize:{size};\tsigned:1;\n")
        };
        let common =
            [field("common_type", 0, 2), field("common_flags", 2, 1), field("common_pid", 4, 4)]
                .concat();
        let format = |name: &str, id: u16, text: &str, fields: &[&str]| {
            let fields: String =
                fields.iter().zip(0..).map(|(name, nth)| field(name, 24 + 4 * nth, 4)).collect();
            let prev = match name {
                "sched_switch" => "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n",
                _ => "",
            };
            format!(
                "name: {name}\nID: {id}\nformat:\n{common}\n\tfield:char {text}[16];\toffset:8;\tsize:16;\tsigned:0;\n{prev}{fields}\nprint fmt: \"\"\n"
            )
        };
        let formats = [
            format(
                "sched_switch",
                SWITCH,
                "next_comm",
                &["prev_pid", "prev_prio", "prev_state", "next_pid", "next_prio"],
            ),
            format("sched_waking", WAKING, "comm", &["pid"]),
            format("sched_wakeup_new", NEW, "comm", &["pid"]),
            format("sched_process_fork", FORK, "child_comm", &["child_pid"]),
        ];
        self.0.extend_from_slice(b"\x17\x08\x44tracing0.6\0");
        let big = T::read_u16(&[0, 1]) == 1;
        self.0.extend_from_slice(&[u8::from(big), 8]);
        self.u32(4096);
        for name in [&b"header_page\0"[..], b"header_event\0"] {
            self.0.extend_from_slice(name);
            self.u64(0);
        }
        self.u32(0);
        self.u32(1);
        self.0.extend_from_slice(b"sched\0");
        self.u32(formats.len() as u32);
        for format in formats {
            self.u64(format.len() as u64);
            self.0.extend_from_slice(format.as_bytes());
        }
    }
}

/// Returns the records of these events. Each round holds the events of one CPU after the other, in
/// the order in which perf finds them in its buffers.
fn records<T: ByteOrder>(events: &[Event], lost: u64) -> Vec<u8> {
    let mut data = Writer::<T>::new();
    for round in events.chunks(97) {
        for cpu in 0..16 {
            round.iter().filter(|event| event.cpu == cpu).for_each(|event| data.sample(event));
        }
        data.head(68, 8);
    }
    if lost > 0 {
        // sample_id_all adds these to every record: process and thread, time, CPU, number.
        data.head(2, 8 + 16 + 32);
        [77, lost, 0, 9, 0, 77].iter().for_each(|&value| data.u64(value));
    }
    data.0
}

/// Returns a file of these events.
pub fn file<T: ByteOrder>(events: &[Event], lost: u64) -> Vec<u8> {
    file_of::<T>(&records::<T>(events, lost))
}

/// Returns a file whose records are compressed, and cut where a buffer of perf's is full.
pub fn compressed<T: ByteOrder>(events: &[Event], lost: u64) -> Vec<u8> {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    let frame = compress_to_vec(&records::<T>(events, lost)[..], CompressionLevel::Fastest);
    let mut data = Writer::<T>::new();
    for (nth, part) in frame.chunks(4000).enumerate() {
        // The newer kind tells its size beside the padding.
        if nth % 2 == 1 {
            let padded = part.len().next_multiple_of(8);
            data.head(83, (16 + padded) as u16);
            data.u64(part.len() as u64);
            data.0.extend_from_slice(part);
            data.0.resize(data.0.len() + padded - part.len(), 0);
        } else {
            data.head(81, (8 + part.len()) as u16);
            data.0.extend_from_slice(part);
        }
    }
    file_of::<T>(&data.0)
}

/// Returns a file that was written into a pipe.
pub fn piped<T: ByteOrder>(events: &[Event], lost: u64) -> Vec<u8> {
    let mut out = Writer::<T>::new();
    out.u64(u64::from_le_bytes(*b"PERFILE2"));
    out.u64(16);
    for id in 0..2 {
        out.head(64, 8 + 64 + 8);
        out.attr(id);
        out.u64(76 + id);
    }
    let mut formats = Writer::<T>::new();
    formats.formats();
    out.head(66, 12);
    out.u32(formats.0.len() as u32);
    formats.0.resize(formats.0.len().next_multiple_of(8), 0);
    out.0.extend_from_slice(&formats.0);
    // The release, and the number of CPUs.
    out.head(80, 8 + 8 + 8);
    out.u64(4);
    out.u32(4);
    out.0.extend_from_slice(b"6.1\0");
    out.head(80, 8 + 8 + 8);
    out.u64(7);
    out.u32(9);
    out.u32(9);
    out.0.extend_from_slice(&records::<T>(events, lost));
    out.0
}

fn file_of<T: ByteOrder>(data: &[u8]) -> Vec<u8> {
    let mut formats = Writer::<T>::new();
    formats.formats();
    let mut out = Writer::<T>::new();
    out.u64(u64::from_le_bytes(*b"PERFILE2"));
    if T::read_u16(&[0, 1]) != 1 {
        assert_eq!(&out.0, b"PERFILE2");
    }
    let table = DATA as u64 - 2 * (64 + 16);
    let after = (DATA + data.len()) as u64;
    for value in
        [104, 64 + 16, table, 2 * (64 + 16), DATA as u64, data.len() as u64, 0, 0, 1 << 1, 0, 0, 0]
    {
        out.u64(value);
    }
    assert_eq!(out.0.len(), 104);
    [76, 77].iter().for_each(|&id| out.u64(id));
    for id in 0..2 {
        out.attr(id);
        out.u64(104 + 8 * id);
        out.u64(8);
    }
    assert_eq!(out.0.len(), DATA);
    out.0.extend_from_slice(data);
    out.u64(after + 16);
    out.u64(formats.0.len() as u64);
    out.0.extend_from_slice(&formats.0);
    out.0
}

/// Returns a trace.dat of these events: of version 6, or of version 7 compressed in this way.
pub fn dat<T: ByteOrder>(
    events: &[Event],
    seven: Option<(&str, Pack)>,
    more: (&str, &[(u64, &[u8])]),
) -> Vec<u8> {
    let mut formats = Writer::<T>::new();
    formats.formats();
    let raw = |event: &Event| (event.cpu, 1_000_000 + event.at_ns, Writer::<T>::raw(event));
    let dat = Dat {
        big: T::read_u16(&[0, 1]) == 1,
        seven,
        // Before them stands what perf leaves empty.
        formats: &formats.0[61..],
        events: &events.iter().map(raw).collect::<Vec<_>>(),
        cpus: 9,
        clock: more.0,
        lost: 3,
    };
    dat.file(more.1)
}

/// Compresses by zlib.
pub fn zlib(bytes: &[u8]) -> Vec<u8> {
    miniz_oxide::deflate::compress_to_vec_zlib(bytes, 6)
}

/// Writes a file for this test only, and returns its path.
pub fn put(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).expect("a file");
    path
}

fn imported(name: &str, bytes: &[u8]) -> (Script, Summary) {
    let path = put(name, bytes);
    import(&path, &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn a_file_of_either_byte_order_gives_what_its_events_give(seed in any::<u64>().no_shrink(), cpus in 1usize..9) {
        let mut events = recording(seed, cpus, 20, 500).events;
        // perf's clock gives no order to two events of one moment on different CPUs, so each event
        // gets a moment of its own.
        events.iter_mut().zip(0..).for_each(|(event, n)| event.at_ns += n);
        events.retain(|event| !matches!(event.kind, Kind::Exec));
        let mut weaver = Weaver::new(&Options::default());
        for event in &events {
            weaver.event(&Event { process: Some(event.pid).filter(|&pid| pid > 0), ..*event }).expect("few enough");
        }
        let origin = Origin { tool: "perf", lost: 3, ..Origin::default() };
        let expected = weaver.finish(&origin).expect("a script");
        prop_assert_eq!(&imported("little.data", &file::<LittleEndian>(&events, 3)), &expected);
        prop_assert_eq!(&imported("big.data", &file::<BigEndian>(&events, 3)), &expected);
        prop_assert_eq!(&imported("z.data", &compressed::<LittleEndian>(&events, 3)), &expected);
        prop_assert_eq!(&imported("big.z.data", &compressed::<BigEndian>(&events, 3)), &expected);
        let piped = [piped::<LittleEndian>(&events, 3), piped::<BigEndian>(&events, 3)];
        for piped in piped {
            let (script, summary) = imported("piped.data", &piped);
            prop_assert_eq!(&script.tasks, &expected.0.tasks);
            prop_assert_eq!((summary.kernel.as_deref(), summary.cpus), (Some("6.1"), Some(9)));
        }
        weaver = Weaver::new(&Options::default());
        for event in &events {
            weaver.event(event).expect("few enough");
        }
        let release = Some("6.1".to_string());
        let origin = Origin { tool: "trace-cmd", lost: 3, release, cpus: Some(9) };
        let traced = weaver.finish(&origin).expect("a script");
        let ways: [(&str, Pack); 3] = [("none", <[u8]>::to_vec), ("zstd", zstd), ("zlib", zlib)];
        for seven in ways.map(Some).into_iter().chain([None]) {
            for dat in [dat::<LittleEndian>, dat::<BigEndian>] {
                prop_assert_eq!(&imported("trace.dat", &dat(&events, seven, ("local", &[]))), &traced);
            }
        }
        prop_assert!(expected.1.warnings()[0].starts_with("3 events were lost"));
    }
}

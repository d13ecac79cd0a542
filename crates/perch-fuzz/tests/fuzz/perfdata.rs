// SPDX-License-Identifier: GPL-2.0-or-later
//! Files of perf.data and trace.dat, built as perf and trace-cmd do: of either byte order, with two
//! tasks on two CPUs that wake each other.

use crate::tracedat::{Dat, Pack};

/// Bytes in one order.
struct Bytes {
    all: Vec<u8>,
    big: bool,
}

impl Bytes {
    fn new(big: bool) -> Bytes {
        Bytes { all: Vec::new(), big }
    }

    /// Adds a number of so many bytes.
    fn number(&mut self, number: u64, bytes: usize) {
        match self.big {
            true => self.all.extend(&number.to_be_bytes()[8 - bytes..]),
            false => self.all.extend(&number.to_le_bytes()[..bytes]),
        }
    }

    fn numbers(&mut self, numbers: &[u64]) {
        numbers.iter().for_each(|number| self.number(*number, 8));
    }

    /// Returns a tracepoint's own bytes.
    fn raw(big: bool, pid: u64, id: u64, fields: &[u64]) -> Bytes {
        let mut raw = Bytes::new(big);
        raw.number(id, 2);
        raw.number(1, 2);
        raw.number(pid, 4);
        raw.all.extend(b"task\0\0\0\0\0\0\0\0\0\0\0\0");
        fields.iter().for_each(|field| raw.number(*field, 4));
        raw
    }

    /// Adds a sample: a tracepoint's number and fields behind the fields that all have.
    fn sample(&mut self, at_ns: u64, cpu: u64, pid: u64, id: u64, fields: &[u64]) {
        let mut raw = Bytes::raw(self.big, pid, id, fields);
        while raw.all.len() % 8 != 4 {
            raw.all.push(0);
        }
        self.number(9, 4);
        self.number(1, 2);
        self.number((8 + 8 + 8 + 8 + 8 + 4 + raw.all.len()) as u64, 2);
        self.number(77, 8);
        self.number(pid, 4);
        self.number(pid, 4);
        self.number(at_ns, 8);
        self.number(cpu, 4);
        self.number(0, 4);
        self.number(raw.all.len() as u64, 4);
        self.all.extend(raw.all);
    }
}

const SWITCH: u64 = 300;
const WAKING: u64 = 301;
const FORK: u64 = 302;
/// The length of the file's own header, and that of an event's attributes with its section.
const HEADER: u64 = 104;
const ATTR: u64 = 64 + 16;

/// Returns the description of a tracepoint whose numbers follow its name.
fn format(name: &str, id: u64, comm: &str, fields: &[&str]) -> String {
    let field = |name: &str, offset: usize, size: usize| {
        format!("\tfield:int {name};\toffset:{offset};\tsize:{size};\tsigned:1;\n")
    };
    let mut text = format!("name: {name}\nID: {id}\nformat:\n");
    text += &field("common_type", 0, 2);
    text += &field("common_flags", 2, 1);
    text += &field("common_pid", 4, 4);
    text += "\n";
    for comm in comm.split(' ') {
        text += &format!("\tfield:char {comm}[16];\toffset:8;\tsize:16;\tsigned:0;\n");
    }
    for (nth, name) in fields.iter().enumerate() {
        text += &field(name, 24 + 4 * nth, 4);
    }
    text + "\nprint fmt: \"\"\n"
}

/// Returns perf's section of tracepoints.
fn tracing_data(big: bool) -> Vec<u8> {
    let switch = ["prev_pid", "prev_prio", "prev_state", "next_pid", "next_prio"];
    let formats = [
        format("sched_switch", SWITCH, "prev_comm next_comm", &switch),
        format("sched_waking", WAKING, "comm", &["pid"]),
        format("sched_process_fork", FORK, "child_comm", &["child_pid"]),
    ];
    let mut out = Bytes::new(big);
    out.all.extend(b"\x17\x08\x44tracing0.6\0");
    out.all.extend([u8::from(big), 8]);
    out.number(4096, 4);
    for name in [&b"header_page\0"[..], b"header_event\0"] {
        out.all.extend(name);
        out.number(0, 8);
    }
    out.number(0, 4);
    out.number(1, 4);
    out.all.extend(b"sched\0");
    out.number(formats.len() as u64, 4);
    for format in formats {
        out.number(format.len() as u64, 8);
        out.all.extend(format.bytes());
    }
    out.all
}

/// A round's events: CPU, task, number and fields of each.
type Round = [(u64, u64, u64, Vec<u64>); 5];

/// Returns so many rounds of events.
fn rounds(rounds: u64) -> Vec<Round> {
    let round = |round| {
        let (awake, other) = if round % 2 == 0 { (11, 12) } else { (12, 11) };
        let (cpu, there) = (round % 2, 1 - round % 2);
        [
            (cpu, 0, SWITCH, vec![0, 120, 0, awake, 120]),
            (cpu, awake, WAKING, vec![other]),
            (cpu, awake, SWITCH, vec![awake, 120, 1, 0, 120]),
            (there, 0, SWITCH, vec![0, 120, 0, other, 125]),
            (there, other, SWITCH, vec![other, 125, 0x100, 0, 120]),
        ]
    };
    (0..rounds).map(round).collect()
}

/// Returns a trace.dat of so many rounds: of version 6, or of version 7 compressed in this way.
pub fn dat(big: bool, seven: Option<(&str, Pack)>, count: u64) -> Vec<u8> {
    let all = rounds(count).into_iter().flatten().zip(1001..);
    let raw = |((cpu, pid, id, fields), at): ((u64, u64, u64, Vec<u64>), u64)| {
        (cpu as u32, 1000 * at, Bytes::raw(big, pid, id, &fields).all)
    };
    let (formats, events) = (&tracing_data(big)[61..], &all.map(raw).collect::<Vec<_>>());
    let dat = Dat { big, seven, formats, events, cpus: 2, clock: "x86-tsc", lost: 3 };
    dat.file(&[(13, b"vm\0"), (14, &[1; 16])])
}

/// Returns the records of so many rounds.
fn records(big: bool, count: u64) -> Vec<u8> {
    let mut out = Bytes::new(big);
    let mut at_ns = 1_001_000;
    out.sample(at_ns, 0, 11, FORK, &[13]);
    for round in rounds(count) {
        for (cpu, pid, id, fields) in round {
            at_ns += 1000;
            out.sample(at_ns, cpu, pid, id, &fields);
        }
        // The end of a round of perf's.
        out.number(68, 4);
        out.number(0, 2);
        out.number(8, 2);
    }
    out.number(2, 4);
    out.number(0, 2);
    out.number(8 + 16 + 32, 2);
    out.numbers(&[77, 3, 0, 9, 0, 77]);
    out.all
}

/// Returns a file of so many rounds.
pub fn file(big: bool, rounds: u64) -> Vec<u8> {
    let (data, tracing) = (records(big, rounds), tracing_data(big));
    let mut out = Bytes::new(big);
    let table = HEADER + 16;
    let begin = table + 2 * ATTR;
    out.number(u64::from_le_bytes(*b"PERFILE2"), 8);
    let length = data.len() as u64;
    out.numbers(&[HEADER, ATTR, table, 2 * ATTR, begin, length]);
    // No event types; of the sections after the records there is the second.
    out.numbers(&[0, 0, 1 << 1, 0, 0, 0, 76, 77]);
    for id in 0..2 {
        out.number(2, 4);
        out.number(64, 4);
        // Each sample has a number, a thread, a time, a CPU and the tracepoint's bytes.
        let sample = 1 << 16 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 10;
        out.numbers(&[SWITCH + id, 1, sample, 0, 1 << 18, 0, 0, HEADER + 8 * id, 8]);
    }
    out.all.extend(data);
    let after = begin + length + 16;
    out.numbers(&[after, tracing.len() as u64]);
    out.all.extend(tracing);
    out.all
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! A reader of Perfetto's traces: of the kernel's events, as they are or in the compact form, and of
//! the processes. Each packet is read by itself; the events of all CPUs are put in order at the end.
//!
//! The fields' numbers are those of Perfetto's protocol buffers. The crates that read these make
//! types of all messages; a trace needs few, so this reads the wire format itself.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Read};
use std::path::Path;

use crate::event::{Context, Event, Kind, Name, State};
use crate::perf::{MOST_WAITING, RecordError, Sorter, is_too_old};
use crate::progress::{Tell, Told};
use crate::weave::Weaver;
use crate::{ImportError, Origin};

/// The largest packet, bytes: Perfetto's own are far below.
const MOST_BYTES: u64 = 1 << 26;
/// The largest process number of Linux (`PID_MAX_LIMIT`).
const MOST_PIDS: i32 = 1 << 22;
/// In the place of a task: the one that runs on the event's CPU.
const RUNS: i32 = -1;
const CLONE_THREAD: u64 = 0x1_0000;

/// Packets that say nothing of a workload: clocks, settings, statistics, names of other packets.
const ABOUT: [u32; 9] = [6, 12, 33, 34, 35, 36, 59, 69, 89];
const PACKETS: [(u32, &str); 8] = [
    (7, "sys_stats"),
    (9, "process_stats"),
    (11, "track_event"),
    (37, "profile_packet"),
    (43, "process_descriptor"),
    (44, "thread_descriptor"),
    (60, "track_descriptor"),
    (66, "perf_sample"),
];
const EVENTS: [(u32, &str); 22] = [
    (3, "print"),
    (11, "cpu_frequency"),
    (12, "cpu_frequency_limits"),
    (13, "cpu_idle"),
    (18, "sched_blocked_reason"),
    (19, "sched_cpu_hotplug"),
    (21, "ipi_entry"),
    (22, "ipi_exit"),
    (23, "ipi_raise"),
    (24, "softirq_entry"),
    (25, "softirq_exit"),
    (26, "softirq_raise"),
    (36, "irq_handler_entry"),
    (37, "irq_handler_exit"),
    (113, "suspend_resume"),
    (240, "sched_process_free"),
    (241, "sched_process_hang"),
    (242, "sched_process_wait"),
    (327, "generic"),
    (329, "sys_enter"),
    (330, "sys_exit"),
    (353, "sched_pi_setprio"),
];

fn named(kind: &str, names: &[(u32, &str)], number: u32) -> String {
    match names.iter().find(|(of, _)| *of == number) {
        Some((_, name)) => (*name).to_string(),
        None => format!("{kind} {number}"),
    }
}

/// Reads a number of seven bits a byte; `None` where the bytes end, or go on beyond 64 bits.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message.
struct Fields<'a> {
    of: &'static str,
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(usize::try_from(length).ok()?)?;
        self.bytes = rest;
        Some(taken)
    }

    fn field(&mut self) -> Option<(u32, Value<'a>)> {
        let key = number(&mut self.bytes)?;
        let fixed = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte));
        let value = match key & 7 {
            0 => Value::Number(number(&mut self.bytes)?),
            1 => Value::Number(fixed(self.take(8)?)),
            2 => {
                let length = number(&mut self.bytes)?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Number(fixed(self.take(4)?)),
            _ => return None,
        };
        Some((u32::try_from(key >> 3).ok().filter(|&number| number > 0)?, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.bytes = &[];
        }
        Some(field.ok_or(RecordError::Message(self.of)))
    }
}

/// The last value of each of a small message's first fields.
#[derive(Default)]
struct Flat<'a> {
    numbers: [Option<u64>; 16],
    bytes: [&'a [u8]; 16],
}

impl<'a> Flat<'a> {
    fn read(of: &'static str, bytes: &'a [u8]) -> Result<Flat<'a>, RecordError> {
        let mut flat = Flat::default();
        for field in (Fields { of, bytes }) {
            match field? {
                (at @ 0..16, Value::Number(number)) => flat.numbers[at as usize] = Some(number),
                (at @ 0..16, Value::Bytes(bytes)) => flat.bytes[at as usize] = bytes,
                _ => {}
            }
        }
        Ok(flat)
    }

    fn int(&self, field: usize) -> i32 {
        self.numbers[field].unwrap_or(0) as i32
    }

    fn name(&self, field: usize) -> Name {
        Name::new(self.bytes[field])
    }

    fn text(&self, field: usize) -> Option<String> {
        let bytes = Some(self.bytes[field]).filter(|bytes| !bytes.is_empty())?;
        Some(String::from_utf8_lossy(&bytes[..bytes.len().min(64)]).into_owned())
    }
}

struct Reader<'a> {
    weaver: &'a mut Weaver,
    events: Sorter<Event>,
    /// The process of each thread that the trace names, and its name.
    threads: BTreeMap<i32, (i32, Name)>,
    origin: Origin,
    /// There are switches; wake-ups.
    has: [bool; 2],
}

/// Reads a trace.
pub fn read(path: &Path, weaver: &mut Weaver, tell: Tell) -> Result<Origin, ImportError> {
    let file = perch_file::open(path)?;
    let bytes = file.metadata()?.len();
    let mut file = BufReader::with_capacity(1 << 20, Told::new(file, bytes, tell));
    let mut reader = Reader {
        weaver,
        events: Sorter::default(),
        threads: BTreeMap::new(),
        origin: Origin { tool: "Perfetto", ..Origin::default() },
        has: [false; 2],
    };
    let (mut at, mut packet) = (0, Vec::new());
    loop {
        let damaged = |source| ImportError::Record { at, source };
        // A packet's key and length.
        let mut head = Vec::new();
        while head.len() < 2 || head[head.len() - 1] >= 0x80 && head.len() < 11 {
            if (&mut file).take(1).read_to_end(&mut head)? == 0 {
                break;
            }
        }
        if head.is_empty() {
            break;
        }
        if head[0] != 0x0a {
            return Err(damaged(RecordError::Message("trace")));
        }
        let length = number(&mut &head[1..]).ok_or_else(|| damaged(RecordError::CutOff))?;
        if length > MOST_BYTES {
            return Err(damaged(RecordError::Long { bytes: length, most: MOST_BYTES }));
        }
        packet.clear();
        if (&mut file).take(length).read_to_end(&mut packet)? as u64 != length {
            return Err(damaged(RecordError::CutOff));
        }
        if !reader.packet(&packet).map_err(damaged)? {
            return Err(ImportError::Input(
                "its packets are compressed: expand them first, traceconv decompress_packets FILE OUTPUT"
                    .to_string(),
            ));
        }
        if reader.events.len() > MOST_WAITING {
            return Err(ImportError::Input(format!(
                "more than {MOST_WAITING} events: record for a shorter time"
            )));
        }
        at += head.len() as u64 + length;
    }
    reader.finish()
}

impl Reader<'_> {
    /// Reads a packet. Returns false where it holds others, compressed.
    fn packet(&mut self, bytes: &[u8]) -> Result<bool, RecordError> {
        for field in (Fields { of: "packet", bytes }) {
            match field? {
                (1, Value::Bytes(bundle)) => self.bundle(bundle)?,
                (2, Value::Bytes(tree)) => self.tree(tree)?,
                (45, Value::Bytes(info)) => {
                    let info = Flat::read("system_info", info)?;
                    let names = Flat::read("utsname", info.bytes[1])?;
                    self.origin.release = names.text(3).or(self.origin.release.take());
                    let cpus = info.numbers[8].and_then(|cpus| u32::try_from(cpus).ok());
                    self.origin.cpus = cpus.or(self.origin.cpus);
                }
                (50, Value::Bytes(_)) => return Ok(false),
                (number, Value::Bytes(_)) if !ABOUT.contains(&number) => {
                    self.weaver.leave_out(&named("packet", &PACKETS, number), 1);
                }
                _ => {}
            }
        }
        Ok(true)
    }

    /// Reads the threads, and the processes, which are the threads that have their number.
    fn tree(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        for field in (Fields { of: "process_tree", bytes }) {
            let (thread, process, name) = match field? {
                (1, Value::Bytes(process)) => {
                    let process = Flat::read("process", process)?;
                    (process.int(1), process.int(1), Name::default())
                }
                (2, Value::Bytes(thread)) => {
                    let thread = Flat::read("thread", thread)?;
                    (thread.int(1), thread.int(3), thread.name(2))
                }
                _ => continue,
            };
            if (1..=MOST_PIDS).contains(&thread) && (1..=MOST_PIDS).contains(&process) {
                self.threads.entry(thread).or_insert((process, name));
            }
        }
        Ok(())
    }

    /// Reads events of one CPU.
    fn bundle(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        let fields = || Fields { of: "ftrace_events", bytes };
        let cpu = fields().find_map(|field| match field {
            Ok((1, Value::Number(cpu))) => Some(cpu as u32),
            _ => None,
        });
        let cpu = cpu.unwrap_or(0);
        for field in fields() {
            match field? {
                (2, Value::Bytes(event)) => self.event(cpu, event)?,
                // True, or in old traces how many.
                (3, Value::Number(lost)) => {
                    self.origin.lost = self.origin.lost.saturating_add(lost);
                }
                (4, Value::Bytes(compact)) => self.compact(cpu, compact)?,
                (8, Value::Bytes(_)) => self.weaver.leave_out("ftrace's own errors", 1),
                _ => {}
            }
        }
        Ok(())
    }

    fn push(&mut self, cpu: u32, at_ns: u64, pid: i32, flags: Option<u64>, kind: Kind) {
        self.has[0] |= matches!(kind, Kind::Switch { .. });
        self.has[1] |= matches!(kind, Kind::Waking { .. } | Kind::Wakeup { .. });
        if flags.is_none() && pid != 0 && matches!(kind, Kind::Waking { .. }) {
            self.weaver.leave_out("flags of sched_waking (an interrupt is taken for its task)", 1);
        }
        let context = Context::of_flags(flags.unwrap_or(0));
        self.events.push(at_ns, Event { at_ns, cpu, pid, process: None, context, kind });
    }

    fn event(&mut self, cpu: u32, bytes: &[u8]) -> Result<(), RecordError> {
        let (mut at_ns, mut pid, mut flags, mut what) = (0, 0, None, None);
        for field in (Fields { of: "event", bytes }) {
            match field? {
                (1, Value::Number(time)) => at_ns = time,
                (2, Value::Number(number)) => pid = number as i32,
                (5, Value::Number(number)) => flags = Some(number),
                (number, Value::Bytes(bytes)) => what = Some((number, bytes)),
                _ => {}
            }
        }
        let Some((number, bytes)) = what else {
            return Ok(());
        };
        let of = Flat::read("event", bytes)?;
        let kind = match number {
            4 => {
                pid = of.int(2);
                Kind::Switch {
                    prev: pid,
                    prev_name: of.name(1),
                    prev_prio: of.int(3),
                    state: State::of_bits(of.numbers[4].unwrap_or(0)),
                    next: of.int(6),
                    next_prio: of.int(7),
                    next_name: of.name(5),
                }
            }
            17 => Kind::Wakeup { pid: of.int(2), name: of.name(1) },
            20 => Kind::Waking { pid: of.int(2), name: of.name(1) },
            114 => Kind::WakeupNew { pid: of.int(2), name: of.name(1) },
            235 => {
                let (child, flags) = (of.int(1), of.numbers[3].unwrap_or(0));
                let process = self.threads.get(&pid).map_or(pid, |(process, _)| *process);
                let process = if flags & CLONE_THREAD != 0 { process } else { child };
                if (1..=MOST_PIDS).contains(&child) {
                    self.threads.insert(child, (process, of.name(2)));
                }
                Kind::Fork { child, name: of.name(2) }
            }
            237 => Kind::Exec,
            239 => Kind::Fork { child: of.int(4), name: of.name(3) },
            491 => Kind::Migrate,
            // The switches have these two: the end of a task, and its new name.
            236 | 238 => return Ok(()),
            number => {
                self.weaver.leave_out(&named("ftrace event", &EVENTS, number), 1);
                return Ok(());
            }
        };
        self.push(cpu, at_ns, pid, flags, kind);
        Ok(())
    }

    /// Reads switches and wake-ups in columns, whose times are each the distance from the one
    /// before, and whose names are numbers of a list.
    fn compact(&mut self, cpu: u32, bytes: &[u8]) -> Result<(), RecordError> {
        let wrong = || RecordError::Message("compact_sched");
        let flat = Flat::read("compact_sched", bytes)?;
        let mut names = Vec::new();
        for field in (Fields { of: "compact_sched", bytes }) {
            if let (5, Value::Bytes(name)) = field? {
                names.push(Name::new(name));
            }
        }
        let name = |at: u64| names.get(usize::try_from(at).ok()?).copied();
        let rows = |fields: [usize; 6]| {
            let mut columns = fields.map(|field| flat.bytes[field]);
            let (flagged, mut at_ns) = (!columns[5].is_empty(), 0u64);
            std::iter::from_fn(move || {
                if columns.iter().all(|column| column.is_empty()) {
                    return None;
                }
                let mut row = [0; 6];
                for (value, column) in
                    row.iter_mut().zip(&mut columns).take(5 + usize::from(flagged))
                {
                    match number(column) {
                        Some(number) => *value = number,
                        None => {
                            columns = [&[]; 6];
                            return Some(Err(wrong()));
                        }
                    }
                }
                at_ns = at_ns.wrapping_add(row[0]);
                row[0] = at_ns;
                Some(Ok((row, flagged.then_some(row[5]))))
            })
        };
        for row in rows([1, 2, 3, 4, 6, 0]) {
            let ([at_ns, state, next, prio, index, _], _) = row?;
            let kind = Kind::Switch {
                prev: RUNS,
                prev_name: Name::default(),
                prev_prio: 0,
                state: State::of_bits(state),
                next: next as i32,
                next_prio: prio as i32,
                next_name: name(index).ok_or_else(wrong)?,
            };
            self.push(cpu, at_ns, RUNS, Some(0), kind);
        }
        for row in rows([7, 8, 9, 10, 11, 12]) {
            let ([at_ns, pid, _, _, index, _], flags) = row?;
            let kind = Kind::Waking { pid: pid as i32, name: name(index).ok_or_else(wrong)? };
            self.push(cpu, at_ns, RUNS, flags, kind);
        }
        Ok(())
    }

    /// Gives the weaver all events, with the tasks and processes that single ones lack.
    fn finish(self) -> Result<Origin, ImportError> {
        let Reader { weaver, mut events, threads, origin, has } = self;
        for (has, name) in has.into_iter().zip(["sched_switch", "sched_waking or sched_wakeup"]) {
            if !has {
                return Err(ImportError::Input(format!(
                    "it has no {name} events: record with them among the ftrace_events of linux.ftrace"
                )));
            }
        }
        is_too_old(origin.release.as_deref())?;
        let mut runs: BTreeMap<u32, (i32, i32, Name)> = BTreeMap::new();
        // Tasks whose fork was seen, and not their first wake-up: a fork may have two events.
        let mut forked = BTreeSet::new();
        let mut result = Ok(());
        let fill = |name: &mut Name, of: i32| {
            if *name == Name::default() {
                *name = threads.get(&of).map_or(*name, |(_, name)| *name);
            }
        };
        events.finish(|mut event| {
            let (pid, prio, name) = runs.get(&event.cpu).copied().unwrap_or_default();
            if event.pid == RUNS {
                event.pid = pid;
            }
            match &mut event.kind {
                Kind::Switch { prev, prev_name, prev_prio, next, next_prio, next_name, .. } => {
                    if *prev == RUNS {
                        (*prev, *prev_prio, *prev_name) = (pid, prio, name);
                    }
                    fill(prev_name, *prev);
                    fill(next_name, *next);
                    runs.insert(event.cpu, (*next, *next_prio, *next_name));
                }
                Kind::Fork { child, .. } if !forked.insert(*child) => return,
                Kind::Fork { child: pid, name }
                | Kind::Waking { pid, name }
                | Kind::Wakeup { pid, name } => fill(name, *pid),
                Kind::WakeupNew { pid, name } => {
                    forked.remove(pid);
                    fill(name, *pid);
                }
                Kind::Exec | Kind::Migrate => {}
            }
            event.process = threads.get(&event.pid).map(|(process, _)| *process);
            if result.is_ok() {
                result = weaver.event(&event);
            }
        });
        result.map(|()| origin)
    }
}

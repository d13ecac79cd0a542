// SPDX-License-Identifier: GPL-2.0-only
//! A simulated run as a Perfetto trace, written as it happens.
//!
//! What CPUs run is in the kernel's own events (`sched_switch`, `sched_waking`), so that Perfetto
//! shows and queries it as a recording of a real machine: the tables `sched` and `thread_state`.
//! Beside it, as tracks of its own: each wake-up with the policy's reason, on the waker's CPU, and
//! an arrow from there to where and when the wakee first runs; how many CPUs are idle; and how many
//! tasks are runnable in each last-level cache.
//!
//! Memory does not grow with the run: a CPU's events are written by the hundred, and what has to be
//! remembered is one number a task.

mod proto;

use std::io::{self, Write};

use perch_sim::{Left, Switched, Watch, Woken};

use proto::Message;

/// Fields of the messages, by the names that Perfetto's definitions give them.
mod field {
    pub const PACKET: u32 = 1;
    // TracePacket
    pub const FTRACE_EVENTS: u32 = 1;
    pub const PROCESS_TREE: u32 = 2;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    // FtraceEventBundle
    pub const CPU: u32 = 1;
    pub const EVENT: u32 = 2;
    // FtraceEvent
    pub const EVENT_TIMESTAMP: u32 = 1;
    pub const EVENT_PID: u32 = 2;
    pub const SCHED_SWITCH: u32 = 4;
    pub const SCHED_WAKING: u32 = 20;
    pub const SCHED_WAKEUP_NEW: u32 = 114;
    // TrackEvent
    pub const ARGUMENT: u32 = 4;
    pub const TYPE: u32 = 9;
    pub const NAME_IID: u32 = 10;
    pub const TRACK: u32 = 11;
    pub const COUNTER: u32 = 30;
    pub const FLOW: u32 = 47;
    pub const FLOW_ENDS: u32 = 48;
}

const INSTANT: u64 = 3;
const COUNT: u64 = 4;
/// Events of a CPU that are written together.
const TOGETHER: usize = 256;
/// The sequence of packets that all tracks are in.
const SEQUENCE: u64 = 1;
/// What a real-time or fair task's priority is where nothing says more: nice 0.
const PRIORITY: u64 = 120;

/// Something that a track shows.
#[derive(Clone, Copy)]
enum Track {
    WakeUps(usize),
    Idle,
    Llc(usize),
}

impl Track {
    fn uuid(self) -> u64 {
        match self {
            Track::Idle => 1,
            Track::WakeUps(cpu) => 1 << 32 | cpu as u64,
            Track::Llc(llc) => 2 << 32 | llc as u64,
        }
    }
}

/// The events of one CPU that wait to be written.
#[derive(Clone, Debug, Default)]
struct Waiting {
    events: Message,
    count: usize,
}

/// Writes a trace.
#[derive(Debug)]
pub struct PerfettoTrace<W: Write> {
    out: W,
    /// By number of the task.
    names: Vec<String>,
    cpus: Vec<Waiting>,
    runs: Vec<Option<u32>>,
    idle: u64,
    /// Names that were told already, each with what it is of; their place is their number.
    interned: Vec<(u32, String)>,
    /// Of each task that was woken and has not run since: the wake-up's number.
    pending: Vec<Option<u64>>,
    woken: u64,
}

impl<W: Write> PerfettoTrace<W> {
    /// A trace of so many CPUs, with these names of tasks.
    ///
    /// # Errors
    /// When writing fails.
    pub fn new(out: W, names: Vec<String>, cpus: usize, llcs: usize) -> io::Result<Self> {
        let mut trace = PerfettoTrace {
            out,
            cpus: vec![Waiting::default(); cpus],
            runs: vec![None; cpus],
            idle: cpus as u64,
            interned: Vec::new(),
            pending: vec![None; names.len()],
            names,
            woken: 0,
        };
        let mut tree = Message::default();
        for (task, name) in trace.names.iter().enumerate() {
            let process = Message::default().uint(1, pid(task as u32)).text(3, name);
            let thread = Message::default()
                .uint(1, pid(task as u32))
                .text(2, name)
                .uint(3, pid(task as u32));
            tree = tree.message(1, &process).message(2, &thread);
        }
        // What was interned before belongs to somebody else: SEQ_INCREMENTAL_STATE_CLEARED.
        let first = Message::default()
            .uint(field::TIMESTAMP, 0)
            .uint(field::SEQUENCE_ID, SEQUENCE)
            .uint(field::SEQUENCE_FLAGS, 1)
            .message(field::PROCESS_TREE, &tree);
        trace.packet(&first)?;
        trace.describe(Track::Idle, "idle CPUs", true)?;
        for llc in 0..llcs {
            trace.describe(Track::Llc(llc), &format!("runnable in LLC {llc}"), true)?;
        }
        for cpu in 0..cpus {
            trace.describe(Track::WakeUps(cpu), &format!("wake-ups, CPU {cpu}"), false)?;
        }
        trace.count(0, Track::Idle, trace.idle)?;
        Ok(trace)
    }

    fn packet(&mut self, packet: &Message) -> io::Result<()> {
        let trace = Message::default().message(field::PACKET, packet);
        self.out.write_all(trace.as_bytes())
    }

    fn describe(&mut self, track: Track, name: &str, counts: bool) -> io::Result<()> {
        let mut descriptor = Message::default().uint(1, track.uuid()).text(2, name);
        if counts {
            descriptor = descriptor.message(8, &Message::default());
        }
        let packet = Message::default()
            .uint(field::SEQUENCE_ID, SEQUENCE)
            .message(field::TRACK_DESCRIPTOR, &descriptor);
        self.packet(&packet)
    }

    fn count(&mut self, at_ns: u64, track: Track, value: u64) -> io::Result<()> {
        let event = Message::default()
            .uint(field::TYPE, COUNT)
            .uint(field::TRACK, track.uuid())
            .uint(field::COUNTER, value);
        self.event(at_ns, &event, &Message::default())
    }

    /// An event of a track, after the names that it is the first to use.
    fn event(&mut self, at_ns: u64, event: &Message, names: &Message) -> io::Result<()> {
        let mut packet = Message::default()
            .uint(field::TIMESTAMP, at_ns)
            .uint(field::SEQUENCE_ID, SEQUENCE)
            // It refers to what was interned: SEQ_NEEDS_INCREMENTAL_STATE.
            .uint(field::SEQUENCE_FLAGS, 2);
        if !names.as_bytes().is_empty() {
            packet = packet.message(field::INTERNED_DATA, names);
        }
        self.packet(&packet.message(field::TRACK_EVENT, event))
    }

    /// The number of a name, which is told in `names` the first time.
    fn intern(&mut self, kind: u32, name: &str, names: &mut Message) -> u64 {
        // A dozen reasons and arguments: a search is as fast as anything.
        let is_it = |known: &(u32, String)| known.0 == kind && known.1 == name;
        if let Some(known) = self.interned.iter().position(is_it) {
            return known as u64 + 1;
        }
        self.interned.push((kind, name.to_string()));
        let number = self.interned.len() as u64;
        let entry = Message::default().uint(1, number).text(2, name);
        *names = std::mem::take(names).message(kind, &entry);
        number
    }

    /// An instant on a CPU's track of wake-ups.
    fn instant(
        &mut self,
        at_ns: u64,
        cpu: usize,
        name: &str,
        arguments: &[(&str, u64)],
        flow: (u32, u64),
    ) -> io::Result<()> {
        const NAMES: u32 = 2;
        const ARGUMENT_NAMES: u32 = 3;
        let mut names = Message::default();
        let mut event = Message::default()
            .uint(field::TYPE, INSTANT)
            .uint(field::TRACK, Track::WakeUps(cpu).uuid())
            .uint(field::NAME_IID, self.intern(NAMES, name, &mut names))
            .fixed64(flow.0, flow.1);
        for (name, value) in arguments {
            let name = self.intern(ARGUMENT_NAMES, name, &mut names);
            let argument = Message::default().uint(1, name).uint(3, *value);
            event = event.message(field::ARGUMENT, &argument);
        }
        self.event(at_ns, &event, &names)
    }

    /// An event of the kernel.
    fn kernel(
        &mut self,
        cpu: usize,
        at_ns: u64,
        pid: u64,
        kind: u32,
        what: &Message,
    ) -> io::Result<()> {
        let event = Message::default()
            .uint(field::EVENT_TIMESTAMP, at_ns)
            .uint(field::EVENT_PID, pid)
            .message(kind, what);
        let waiting = &mut self.cpus[cpu];
        waiting.events = std::mem::take(&mut waiting.events).message(field::EVENT, &event);
        waiting.count += 1;
        if waiting.count < TOGETHER {
            return Ok(());
        }
        self.write_waiting(cpu)
    }

    fn write_waiting(&mut self, cpu: usize) -> io::Result<()> {
        let waiting = std::mem::take(&mut self.cpus[cpu]);
        if waiting.count == 0 {
            return Ok(());
        }
        let mut bundle = Message::default().uint(field::CPU, cpu as u64);
        bundle.append(&waiting.events);
        self.packet(&Message::default().message(field::FTRACE_EVENTS, &bundle))
    }

    fn name(&self, task: Option<u32>) -> &str {
        task.map_or("swapper", |task| &self.names[task as usize])
    }
}

/// The first task is not 0, which is who idles.
fn pid(task: u32) -> u64 {
    u64::from(task) + 1
}

impl<W: Write> Watch for PerfettoTrace<W> {
    fn woken(&mut self, woken: &Woken) -> io::Result<()> {
        self.woken += 1;
        let number = self.woken;
        self.pending[woken.task as usize] = Some(number);
        let what = Message::default()
            .text(1, self.name(Some(woken.task)))
            .uint(2, pid(woken.task))
            .uint(3, PRIORITY)
            .uint(4, 1)
            .uint(5, woken.cpu as u64);
        let kind = match woken.is_new {
            true => field::SCHED_WAKEUP_NEW,
            false => field::SCHED_WAKING,
        };
        let waker = woken.waker.map_or(0, pid);
        self.kernel(woken.this_cpu, woken.at_ns, waker, kind, &what)?;
        let arguments = [
            ("task", pid(woken.task)),
            ("previous CPU", woken.prev_cpu as u64),
            ("chosen CPU", woken.cpu as u64),
            ("examined CPUs", u64::from(woken.examined)),
        ];
        let flow = (field::FLOW, number);
        self.instant(woken.at_ns, woken.this_cpu, woken.reason, &arguments, flow)
    }

    fn switched(&mut self, switched: &Switched) -> io::Result<()> {
        let &Switched {
            at_ns,
            cpu,
            from,
            to,
        } = switched;
        // As the kernel codes them: R, S and X.
        let state = match from {
            None | Some((_, Left::Runnable)) => 0,
            Some((_, Left::Asleep)) => 1,
            Some((_, Left::Dead)) => 16,
        };
        let was = from.map(|(task, _)| task);
        let what = Message::default()
            .text(1, self.name(was))
            .uint(2, was.map_or(0, pid))
            .uint(3, PRIORITY)
            .uint(4, state)
            .text(5, self.name(to))
            .uint(6, to.map_or(0, pid))
            .uint(7, PRIORITY);
        self.kernel(cpu, at_ns, was.map_or(0, pid), field::SCHED_SWITCH, &what)?;
        self.runs[cpu] = to;
        let idle = self.idle + u64::from(to.is_none()) - u64::from(was.is_none());
        if idle != self.idle {
            self.idle = idle;
            self.count(at_ns, Track::Idle, idle)?;
        }
        let Some(task) = to else {
            return Ok(());
        };
        match self.pending[task as usize].take() {
            Some(number) => {
                let arguments = [("task", pid(task))];
                self.instant(at_ns, cpu, "runs", &arguments, (field::FLOW_ENDS, number))
            }
            None => Ok(()),
        }
    }

    fn loaded(&mut self, at_ns: u64, llc: usize, runnable: u32) -> io::Result<()> {
        self.count(at_ns, Track::Llc(llc), u64::from(runnable))
    }

    /// Ends what still runs, so that every slice has its length.
    fn ended(&mut self, at_ns: u64) -> io::Result<()> {
        for cpu in 0..self.cpus.len() {
            if let Some(task) = self.runs[cpu] {
                self.switched(&Switched {
                    at_ns,
                    cpu,
                    from: Some((task, Left::Runnable)),
                    to: None,
                })?;
            }
            self.write_waiting(cpu)?;
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: GPL-2.0-or-later
//! The packets of a trace, and events on tracks of the trace's own: instants and counters.
//!
//! All packets are in one sequence, which has a clock of its own: a packet tells its distance in
//! nanoseconds from the packet before. The writer tells each name once, and refers to it by a
//! number from then on.

use std::io::{self, Write};

use super::proto::Message;

/// Fields of the messages, by the names that Perfetto's definitions give them.
pub mod field {
    pub const PACKET: u32 = 1;
    // Fields of TracePacket.
    pub const FTRACE_EVENTS: u32 = 1;
    pub const PROCESS_TREE: u32 = 2;
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED_DATA: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const CLOCK: u32 = 58;
    pub const DEFAULTS: u32 = 59;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    // Fields of TrackEvent.
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
/// The number of the sequence to which all tracks belong.
const SEQUENCE: u64 = 1;
/// The clock of packets that name no other one.
const BOOTTIME: u64 = 6;
/// The first number that a sequence may give to a clock of its own.
const SINCE_LAST: u64 = 64;

/// The kinds of names that are told once.
const NAMES: u32 = 2;
const ARGUMENT_NAMES: u32 = 3;

/// The part of an instant in an arrow.
#[derive(Clone, Copy, Debug)]
pub enum Flow {
    /// The arrow begins here, or goes on.
    From(u64),
    /// The arrow ends here.
    To(u64),
}

/// An instant on a track.
pub struct Instant<'a> {
    pub at_ns: u64,
    pub track: u64,
    pub name: &'a str,
    pub arguments: &'a [(&'a str, u64)],
    pub flows: &'a [Flow],
}

/// A writer of packets.
#[derive(Debug)]
pub struct Stream<W: Write> {
    out: W,
    /// The packet that is being written.
    packet: Message,
    /// The names that this packet is the first to use.
    names: Message,
    /// The time of the last event of a track.
    at_ns: u64,
    /// The names that were told already, each with its kind; the place of a name is its number.
    interned: Vec<(u32, String)>,
}

impl<W: Write> Stream<W> {
    /// Begins a trace. `tree` has the processes and threads of the trace.
    pub fn new(out: W, tree: &Message) -> io::Result<Self> {
        let mut stream = Stream {
            out,
            packet: Message::default(),
            names: Message::default(),
            at_ns: 0,
            interned: Vec::new(),
        };
        stream.packet(|packet| {
            packet.uint(field::TIMESTAMP, 0).uint(field::SEQUENCE_ID, SEQUENCE);
            // The names told before belong to another trace: SEQ_INCREMENTAL_STATE_CLEARED.
            packet.uint(field::SEQUENCE_FLAGS, 1).within(field::CLOCK_SNAPSHOT, |snapshot| {
                snapshot.within(1, |clock| {
                    clock.uint(1, BOOTTIME).uint(2, 0);
                });
                snapshot.within(1, |clock| {
                    clock.uint(1, SINCE_LAST).uint(2, 0).uint(3, 1);
                });
                snapshot.uint(2, BOOTTIME);
            });
            packet.within(field::DEFAULTS, |defaults| {
                defaults.uint(field::CLOCK, SINCE_LAST);
            });
        })?;
        if !tree.is_empty() {
            stream.packet(|packet| {
                packet.message(field::PROCESS_TREE, tree);
            })?;
        }
        Ok(stream)
    }

    /// Writes a packet, which belongs to no sequence by itself.
    pub fn packet(&mut self, write: impl FnOnce(&mut Message)) -> io::Result<()> {
        self.packet.clear();
        self.packet.within(field::PACKET, write);
        self.out.write_all(self.packet.as_bytes())
    }

    /// Tells the name of a track, and whether it is a counter.
    pub fn describe(&mut self, track: u64, name: &str, counts: bool) -> io::Result<()> {
        self.packet(|packet| {
            packet.uint(field::SEQUENCE_ID, SEQUENCE);
            packet.within(field::TRACK_DESCRIPTOR, |descriptor| {
                descriptor.uint(1, track).text(2, name);
                if counts {
                    descriptor.within(8, |_| {});
                }
            });
        })
    }

    /// Writes a packet of a track at its time. One that comes late has its time by the common clock.
    fn event(&mut self, at_ns: u64, write: impl FnOnce(&mut Message)) -> io::Result<()> {
        let last_ns = self.at_ns;
        self.at_ns = at_ns.max(last_ns);
        self.packet(|packet| {
            match at_ns.checked_sub(last_ns) {
                Some(later) => packet.uint(field::TIMESTAMP, later),
                None => packet.uint(field::TIMESTAMP, at_ns).uint(field::CLOCK, BOOTTIME),
            };
            write(packet.uint(field::SEQUENCE_ID, SEQUENCE));
        })
    }

    /// Sets a counter to a value from now on.
    pub fn count(&mut self, at_ns: u64, track: u64, value: u64) -> io::Result<()> {
        self.event(at_ns, |packet| {
            packet.within(field::TRACK_EVENT, |event| {
                event.uint(field::TYPE, COUNT).uint(field::TRACK, track);
                event.uint(field::COUNTER, value);
            });
        })
    }

    /// Returns the number of a name; the first time, the packet tells the name as well.
    fn intern(&mut self, kind: u32, name: &str) -> u64 {
        // There are a dozen reasons and arguments, so a search is as fast as anything.
        let is_it = |known: &(u32, String)| known.0 == kind && known.1 == name;
        if let Some(known) = self.interned.iter().position(is_it) {
            return known as u64 + 1;
        }
        self.interned.push((kind, name.to_string()));
        let number = self.interned.len() as u64;
        self.names.within(kind, |entry| {
            entry.uint(1, number).text(2, name);
        });
        number
    }

    /// Writes an instant on a track.
    pub fn instant(&mut self, instant: &Instant) -> io::Result<()> {
        let mut event = std::mem::take(&mut self.names);
        event.clear();
        let name = self.intern(NAMES, instant.name);
        event.uint(field::TYPE, INSTANT).uint(field::TRACK, instant.track);
        event.uint(field::NAME_IID, name);
        for flow in instant.flows {
            match *flow {
                Flow::From(number) => event.fixed64(field::FLOW, number),
                Flow::To(number) => event.fixed64(field::FLOW_ENDS, number),
            };
        }
        for (name, value) in instant.arguments {
            let name = self.intern(ARGUMENT_NAMES, name);
            event.within(field::ARGUMENT, |argument| {
                argument.uint(1, name).uint(3, *value);
            });
        }
        let names = std::mem::take(&mut self.names);
        let done = self.event(instant.at_ns, |packet| {
            if !names.is_empty() {
                packet.message(field::INTERNED_DATA, &names);
            }
            packet.message(field::TRACK_EVENT, &event);
        });
        // The next packet reuses this memory.
        self.names = event;
        self.names.clear();
        done
    }

    /// Flushes the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

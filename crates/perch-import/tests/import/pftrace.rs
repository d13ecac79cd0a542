// SPDX-License-Identifier: GPL-2.0-or-later
//! A writer of Perfetto's traces, for tests.

use perch_import::{Context, Event, Kind, Name, State};

/// A message.
#[derive(Clone, Default)]
pub struct Message(pub Vec<u8>);

impl Message {
    fn number(mut self, mut value: u64) -> Message {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }

    /// Adds a field that is a number.
    pub fn uint(self, field: u64, value: u64) -> Message {
        self.number(field << 3).number(value)
    }

    /// Adds a field that is a text or another message.
    pub fn bytes(self, field: u64, bytes: &[u8]) -> Message {
        let mut message = self.number(field << 3 | 2).number(bytes.len() as u64);
        message.0.extend(bytes);
        message
    }

    fn text(self, field: u64, name: Name) -> Message {
        self.bytes(field, name.to_string().as_bytes())
    }
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
    let named = |pid: i32, name| Message::default().text(1, name).uint(2, pid as u64);
    let (field, what) = match event.kind {
        Kind::Switch { prev, prev_name, prev_prio, state: left, next, next_prio, next_name } => {
            let what = named(prev, prev_name).uint(3, prev_prio as u64).uint(4, state(left));
            (4, what.text(5, next_name).uint(6, next as u64).uint(7, next_prio as u64))
        }
        Kind::Wakeup { pid, name } => (17, named(pid, name)),
        Kind::Waking { pid, name } => (20, named(pid, name)),
        Kind::WakeupNew { pid, name } => (114, named(pid, name)),
        Kind::Fork { child, name } => (239, Message::default().text(3, name).uint(4, child as u64)),
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
        names = names.text(5, name);
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
pub fn file(events: &[Event], compact: bool) -> Vec<u8> {
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

// SPDX-License-Identifier: GPL-2.0-or-later
//! Messages between tasks: queues that are never full, and sockets that are.

use std::collections::VecDeque;

use super::{Interpreter, Phase, Step, System};

/// A queue of messages between tasks.
#[derive(Debug, Default)]
pub struct Channel {
    /// Cache lines of each message, and the CPU that wrote it.
    pub messages: VecDeque<(u32, u32)>,
    /// Tasks that wait for one, first come first served.
    pub waiting: VecDeque<u32>,
    /// Tasks that wait for room.
    pub blocked: VecDeque<u32>,
    /// They are woken when no more messages than this are left.
    pub low: u32,
    /// Messages put in and taken out so far.
    pub sent: u64,
    /// See `sent`.
    pub taken: u64,
}

impl Channel {
    /// Adds a message that was written on `cpu`.
    pub fn put(&mut self, lines: u32, cpu: usize) {
        self.messages.push_back((lines, cpu as u32));
        self.sent += 1;
    }
}

impl Interpreter {
    /// The running task puts a message into a channel and wakes the first task that waits for one.
    pub(super) fn send<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: u32,
        channel: u32,
        lines: u32,
        sync: bool,
    ) {
        self.threads[task as usize].pc += 1;
        if system.transmit(cpu, task, channel, lines) {
            return;
        }
        let c = &mut self.channels[channel as usize];
        c.put(lines, cpu);
        if let Some(receiver) = c.waiting.pop_front() {
            let cost = system.wake(receiver, cpu, task, sync);
            system.charge_kernel(cpu, task, cost);
        }
    }

    /// The running task writes to a socket that holds so many messages at most; it sleeps while
    /// that is full.
    pub(super) fn write<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: u32,
        channel: u32,
        lines: u32,
        room: u32,
    ) -> Step {
        let c = &mut self.channels[channel as usize];
        if c.messages.len() >= room as usize {
            // unix_write_space: writable again with at most a quarter of the buffer in use.
            c.low = room / 4;
            c.blocked.push_back(task);
            return Step::Sleeps;
        }
        // sock_def_readable says that the writer will sleep soon.
        self.send(system, cpu, task, channel, lines, true);
        Step::Done
    }

    /// The running task goes on with making a channel readable for good: wakes the next task that
    /// waits, and after the last one leaves a message for each reader that is not there yet. It
    /// holds the lock of their wait queue all the while, with interrupts off. (Up to 6.5 the kernel
    /// lets go of the lock after every 64.)
    pub(super) fn release<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: u32,
        channel: u32,
        readers: u32,
    ) -> Step {
        let c = &mut self.channels[channel as usize];
        if let Some(receiver) = c.waiting.pop_front() {
            c.put(1, cpu);
            self.threads[task as usize].phase = Phase::Inside;
            system.set_atomic(task, true);
            let cost = system.wake(receiver, cpu, task, true);
            system.charge_kernel(cpu, task, cost);
            return Step::Works;
        }
        while c.sent < u64::from(readers) {
            c.put(1, cpu);
        }
        system.set_atomic(task, false);
        self.done(task)
    }

    /// The running task goes on with taking a message out of a channel, and then with waking
    /// those that waited for room: all of them, one after the other, in sync wake-ups.
    pub(super) fn receive<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: u32,
        channel: u32,
    ) -> Step {
        let t = &mut self.threads[task as usize];
        let c = &mut self.channels[channel as usize];
        if t.phase == Phase::Fresh {
            let Some((lines, writer)) = c.messages.pop_front() else {
                if system.owes_work(task) {
                    return Step::Works;
                }
                c.waiting.push_back(task);
                return Step::Sleeps;
            };
            c.taken += 1;
            if !c.blocked.is_empty() && c.messages.len() <= c.low as usize {
                t.phase = Phase::Inside;
            }
            let cost = system.costs().transfer_ns(lines, writer as usize, cpu);
            system.charge_kernel(cpu, task, cost);
        }
        if t.phase == Phase::Inside {
            if system.owes_work(task) {
                return Step::Works;
            }
            if let Some(writer) = c.blocked.pop_front() {
                let cost = system.wake(writer, cpu, task, true);
                system.charge_kernel(cpu, task, cost);
            }
            if !c.blocked.is_empty() {
                return Step::Works;
            }
        }
        self.done(task)
    }
}

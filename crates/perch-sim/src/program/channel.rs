// SPDX-License-Identifier: GPL-2.0-or-later
//! Messages between tasks: queues that are never full, and sockets that are.

use std::collections::VecDeque;

use crate::id::{ChannelId, CpuId, Id, TaskId};

use super::{Interpreter, Phase, Progress, System};

/// A message.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Cache lines that the reader has to fetch.
    lines: u32,
    /// The CPU that wrote it.
    writer: CpuId,
}

/// A queue of messages between tasks.
#[derive(Debug, Default)]
pub struct Channel {
    /// The messages, first come first served.
    pub messages: VecDeque<Message>,
    /// Tasks that wait for one, first come first served.
    pub waiting: VecDeque<TaskId>,
    /// Tasks that wait for room.
    pub blocked: VecDeque<TaskId>,
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
        let writer = CpuId::of(cpu);
        self.messages.push_back(Message { lines, writer });
        self.sent += 1;
    }
}

impl Interpreter {
    /// The running task puts a message into a channel and wakes the first task that waits for one.
    pub(super) fn send<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: TaskId,
        channel: ChannelId,
        lines: u32,
        sync: bool,
    ) {
        self.threads[task].pc += 1;
        if system.transmit(cpu, task, channel, lines) {
            return;
        }
        let c = &mut self.channels[channel];
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
        task: TaskId,
        channel: ChannelId,
        lines: u32,
        room: u32,
    ) -> Progress {
        let c = &mut self.channels[channel];
        if c.messages.len() >= room as usize {
            // unix_write_space: writable again with at most a quarter of the buffer in use.
            c.low = room / 4;
            c.blocked.push_back(task);
            return Progress::Sleeps;
        }
        // sock_def_readable says that the writer will sleep soon.
        self.send(system, cpu, task, channel, lines, true);
        Progress::Done
    }

    /// The running task goes on with making a channel readable for good: wakes the next task that
    /// waits, and after the last one leaves a message for each reader that is not there yet. It
    /// holds the lock of their wait queue all the while, with interrupts off. (Up to 6.5 the kernel
    /// lets go of the lock after every 64.)
    pub(super) fn release<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: TaskId,
        channel: ChannelId,
        readers: u32,
    ) -> Progress {
        let c = &mut self.channels[channel];
        if let Some(receiver) = c.waiting.pop_front() {
            c.put(1, cpu);
            self.threads[task].phase = Phase::InCall;
            system.set_atomic(task, true);
            let cost = system.wake(receiver, cpu, task, true);
            system.charge_kernel(cpu, task, cost);
            return Progress::Works;
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
        task: TaskId,
        channel: ChannelId,
    ) -> Progress {
        let t = &mut self.threads[task];
        let c = &mut self.channels[channel];
        if t.phase == Phase::Fresh {
            let Some(Message { lines, writer }) = c.messages.pop_front() else {
                if system.owes_work(task) {
                    return Progress::Works;
                }
                c.waiting.push_back(task);
                return Progress::Sleeps;
            };
            c.taken += 1;
            if !c.blocked.is_empty() && c.messages.len() <= c.low as usize {
                t.phase = Phase::InCall;
            }
            let cost = system.costs().transfer_ns(lines, writer.index(), cpu);
            system.charge_kernel(cpu, task, cost);
        }
        if t.phase == Phase::InCall {
            if system.owes_work(task) {
                return Progress::Works;
            }
            if let Some(writer) = c.blocked.pop_front() {
                let cost = system.wake(writer, cpu, task, true);
                system.charge_kernel(cpu, task, cost);
            }
            if !c.blocked.is_empty() {
                return Progress::Works;
            }
        }
        self.done(task)
    }
}

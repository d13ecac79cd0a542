// SPDX-License-Identifier: GPL-2.0-or-later
//! Messages between tasks: queues that are never full, and sockets that are.

use std::collections::VecDeque;

use perch_sched::{Life, Violation, hold};
use perch_workload::Op;

use super::system::System;
use super::thread::{Phase, Progress, Thread, Threads};
use crate::id::{ChannelId, CpuId, Id, IdVec, TaskId};

#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// Cache lines that the reader has to fetch.
    pub lines: u32,
    /// The CPU that wrote it.
    pub writer: CpuId,
}

/// A queue of messages between tasks.
#[derive(Debug, Default)]
struct Channel {
    /// The messages, first come first served.
    messages: VecDeque<Message>,
    /// Tasks that wait for a message, first come first served.
    waiting: VecDeque<TaskId>,
    /// Tasks that wait for room, first come first served.
    blocked: VecDeque<TaskId>,
    /// Those of them that a reader is about to wake, in its order. They are a list of their own
    /// because the kernel wakes who waits when the walk begins: it holds the wait queue's lock, so
    /// nobody joins. In hackbench on Juno woken writers filled the socket and waited again so fast
    /// that a reader which woke them once more never ended its walk.
    leaving: VecDeque<TaskId>,
    /// When the reader wakes those, and how.
    space: Space,
    /// Messages that tasks have put in so far.
    sent: u64,
    /// Messages that tasks have taken out so far.
    taken: u64,
}

/// What a socket holds: `room` messages. The reader wakes its writers when at most `low` are left, in
/// a sync wake-up or another.
#[derive(Clone, Copy, Debug, Default)]
pub struct Space {
    pub room: u32,
    pub low: u32,
    pub sync: bool,
}

impl Channel {
    /// Adds a message that was written on `cpu`.
    fn put(&mut self, lines: u32, cpu: usize) {
        let writer = CpuId::of(cpu);
        self.messages.push_back(Message { lines, writer });
        self.sent += 1;
    }
}

/// All channels of a run.
#[derive(Debug)]
pub struct Channels {
    channels: IdVec<ChannelId, Channel>,
}

impl Channels {
    /// This many channels, all empty.
    pub fn new(n: usize) -> Channels {
        Channels { channels: (0..n).map(|_| Channel::default()).collect() }
    }

    /// Puts a message that comes from elsewhere into a channel, on `cpu`. Returns the task that
    /// waited for one, which the caller has to wake.
    pub fn put(&mut self, channel: ChannelId, lines: u32, cpu: usize) -> Option<TaskId> {
        let c = &mut self.channels[channel];
        c.put(lines, cpu);
        c.waiting.pop_front()
    }

    /// A task elsewhere takes a message out of a channel, or waits for one. Returns whether it has
    /// one.
    pub fn take(&mut self, channel: ChannelId, task: TaskId) -> bool {
        let c = &mut self.channels[channel];
        if c.messages.pop_front().is_none() {
            c.waiting.push_back(task);
            return false;
        }
        c.taken += 1;
        true
    }

    /// The running task puts a message into a channel and wakes the first task that waits for one.
    pub fn send<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        thread: &mut Thread,
        channel: ChannelId,
        lines: u32,
        sync: bool,
    ) {
        thread.step();
        let task = thread.task;
        if system.transmit(cpu, task, channel, lines) {
            return;
        }
        if let Some(receiver) = self.put(channel, lines, cpu) {
            let cost = system.wake(receiver, cpu, task, sync);
            system.charge_kernel(cpu, task, cost);
        }
    }

    /// The running task writes to a socket; it sleeps while the socket is full.
    pub fn write<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        thread: &mut Thread,
        channel: ChannelId,
        lines: u32,
        space: Space,
    ) -> Progress {
        let c = &mut self.channels[channel];
        if c.messages.len() >= space.room as usize {
            c.space = space;
            c.blocked.push_back(thread.task);
            return Progress::Sleeps;
        }
        // sock_def_readable says that the writer will sleep soon.
        self.send(system, cpu, thread, channel, lines, true);
        Progress::Done
    }

    /// The running task goes on with making a channel readable for good: it wakes the next task
    /// that waits, and after the last one leaves a message for each reader that is not there yet.
    /// It holds the lock of their wait queue all the while, with interrupts off. (Up to 6.5 the
    /// kernel lets go of the lock after every 64.)
    pub fn release<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        thread: &mut Thread,
        channel: ChannelId,
        readers: u32,
    ) -> Progress {
        let c = &mut self.channels[channel];
        let task = thread.task;
        if let Some(receiver) = c.waiting.pop_front() {
            c.put(1, cpu);
            thread.phase = Phase::InCall;
            system.set_atomic(task, true);
            let cost = system.wake(receiver, cpu, task, true);
            system.charge_kernel(cpu, task, cost);
            return Progress::Works;
        }
        while c.sent < u64::from(readers) {
            c.put(1, cpu);
        }
        system.set_atomic(task, false);
        thread.done()
    }

    /// The running task goes on with taking a message out of a channel, and then with waking the
    /// tasks that waited for room: all of them, one after the other.
    pub fn receive<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        thread: &mut Thread,
        channel: ChannelId,
    ) -> Progress {
        let c = &mut self.channels[channel];
        let task = thread.task;
        if thread.phase == Phase::Fresh {
            let Some(Message { lines, writer }) = c.messages.pop_front() else {
                if system.owes_work(task) {
                    return Progress::Works;
                }
                c.waiting.push_back(task);
                return Progress::Sleeps;
            };
            c.taken += 1;
            if !c.blocked.is_empty() && c.messages.len() <= c.space.low as usize {
                thread.phase = Phase::InCall;
                c.leaving.append(&mut c.blocked);
            }
            let cost = system.costs().transfer_ns(lines, writer.index(), cpu);
            system.charge_kernel(cpu, task, cost);
        }
        if thread.phase == Phase::InCall {
            if system.owes_work(task) {
                return Progress::Works;
            }
            if let Some(writer) = c.leaving.pop_front() {
                let cost = system.wake(writer, cpu, task, c.space.sync);
                system.charge_kernel(cpu, task, cost);
            }
            if !c.leaving.is_empty() {
                return Progress::Works;
            }
        }
        thread.done()
    }
}

/// For the auditor.
impl Channels {
    /// The tasks that sleep until there is a message, or room for one.
    pub fn sleepers(&self) -> impl Iterator<Item = TaskId> {
        let channels = self.channels.iter();
        channels.flat_map(|c| c.waiting.iter().chain(&c.blocked).chain(&c.leaving).copied())
    }

    /// A task that waits for a message is asleep, and a task was woken for each message that lies
    /// there; every message that was sent was taken or lies there; a task that waits for room will
    /// be woken.
    ///
    /// # Errors
    /// The channel in which this does not hold.
    pub fn check(&self, threads: &Threads, life: &dyn Fn(TaskId) -> Life) -> Result<(), Violation> {
        let channels = || self.channels.iter();
        let mut woken: IdVec<ChannelId, usize> = channels().map(|_| 0).collect();
        let mut waking: IdVec<ChannelId, bool> = channels().map(|_| false).collect();
        let up = |l: Life| matches!(l, Life::Waking | Life::Queued | Life::Running);
        for (_, t) in threads.named().filter(|&(id, _)| up(life(id))) {
            if let Op::Receive { channel } = *t.op() {
                woken[ChannelId(channel)] += 1;
                waking[ChannelId(channel)] |= t.phase == Phase::InCall;
            }
        }
        for (number, channel) in self.channels.named() {
            let left = channel.messages.len();
            hold!(
                channel.waiting.is_empty() || left <= woken[number],
                "channel {number}: {left} messages, {} woken for them, {:?} asleep",
                woken[number],
                channel.waiting
            );
            hold!(
                channel.sent - channel.taken == left as u64,
                "channel {number}: {left} of {} messages left, {} taken",
                channel.sent,
                channel.taken
            );
            hold!(
                channel.leaving.is_empty() || waking[number],
                "channel {number}: nobody wakes {:?}, who may write",
                channel.leaving
            );
            hold!(
                channel.blocked.is_empty() || left > channel.space.low as usize || waking[number],
                "channel {number}: {left} messages, {:?} wait for room, nobody wakes them",
                channel.blocked
            );
        }
        Ok(())
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Messages between tasks: queues that are never full, and sockets that are.

use std::collections::VecDeque;

use super::Kernel;
use super::mutex::Step;
use super::task::Phase;
use super::wake::Waker;
use crate::workload::Op;

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

impl Kernel<'_> {
    /// The running task puts a message into a channel and wakes who waits for one.
    pub(super) fn send(&mut self, cpu: usize, task: u32, channel: u32, lines: u32, sync: bool) {
        if self.is_outward(channel) {
            self.tasks[task as usize].pc += 1;
            return self.transmit(cpu, task, channel, lines);
        }
        let c = &mut self.channels[channel as usize];
        c.messages.push_back((lines, cpu as u32));
        c.sent += 1;
        if let Some(receiver) = c.waiting.pop_front() {
            let cost = self.wake(receiver, cpu, Waker::Task(task), sync);
            self.charge_kernel(cpu, task, cost);
        }
        self.tasks[task as usize].pc += 1;
    }

    /// The running task writes to a socket that holds so many messages at most; it sleeps while
    /// that is full.
    pub(super) fn write(
        &mut self,
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
            self.block(cpu, task);
            return Step::Left;
        }
        // sock_def_readable says that the writer will sleep soon.
        self.send(cpu, task, channel, lines, true);
        Step::Done
    }

    /// The running task goes on with making a channel readable for good: wakes the next who
    /// waits, and after the last one leaves a message for each reader that is not there yet.
    pub(super) fn release(&mut self, cpu: usize, task: u32, channel: u32, readers: u32) -> Step {
        let c = &mut self.channels[channel as usize];
        if let Some(receiver) = c.waiting.pop_front() {
            c.messages.push_back((1, cpu as u32));
            c.sent += 1;
            self.tasks[task as usize].phase = Phase::Inside;
            let cost = self.wake(receiver, cpu, Waker::Task(task), true);
            self.charge_kernel(cpu, task, cost);
            return Step::Works;
        }
        while c.sent < u64::from(readers) {
            c.messages.push_back((1, cpu as u32));
            c.sent += 1;
        }
        let t = &mut self.tasks[task as usize];
        t.phase = Phase::Fresh;
        t.pc += 1;
        Step::Done
    }

    /// Whether a CPU's running task wakes up the readers of a channel: it holds the lock of their
    /// wait queue, with interrupts off. (Up to 6.5 the kernel lets go of it after every 64.)
    pub(super) fn releases(&self, cpu: usize) -> bool {
        self.cpus[cpu].current.is_some_and(|task| {
            let t = &self.tasks[task as usize];
            let op = t.program[t.pc as usize];
            t.phase == Phase::Inside && matches!(op, Op::Release { .. })
        })
    }

    /// The running task goes on with taking a message out of a channel, and then with waking
    /// those that waited for room: all of them, one after the other, in sync wake-ups.
    pub(super) fn receive(&mut self, cpu: usize, task: u32, channel: u32) -> Step {
        let t = &mut self.tasks[task as usize];
        let c = &mut self.channels[channel as usize];
        if t.phase == Phase::Fresh {
            let Some((lines, writer)) = c.messages.pop_front() else {
                if t.debt_ns > 0 {
                    return Step::Works;
                }
                c.waiting.push_back(task);
                self.block(cpu, task);
                return Step::Left;
            };
            c.taken += 1;
            if !c.blocked.is_empty() && c.messages.len() <= c.low as usize {
                t.phase = Phase::Inside;
            }
            let cost = self.costs.transfer_ns(lines, writer as usize, cpu);
            self.charge_kernel(cpu, task, cost);
        }
        let t = &mut self.tasks[task as usize];
        let c = &mut self.channels[channel as usize];
        if t.phase == Phase::Inside {
            if t.debt_ns > 0 {
                return Step::Works;
            }
            if let Some(writer) = c.blocked.pop_front() {
                let cost = self.wake(writer, cpu, Waker::Task(task), true);
                self.charge_kernel(cpu, task, cost);
            }
            if !self.channels[channel as usize].blocked.is_empty() {
                return Step::Works;
            }
        }
        let t = &mut self.tasks[task as usize];
        t.phase = Phase::Fresh;
        t.pc += 1;
        Step::Done
    }
}

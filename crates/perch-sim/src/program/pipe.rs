// SPDX-License-Identifier: GPL-2.0-or-later
//! Pipes: sixteen buffers of a page.
//!
//! Since 5.5 a write to an empty pipe wakes the first reader that waits, and a read from a full pipe
//! the first writer; since 6.14 the read does so only if it frees a page. A task that has waited and
//! leaves something for the next of its kind wakes that one. Before 5.5 each write, and each read
//! that frees a page, wakes all tasks that wait, the last one first. All of these are sync wake-ups.
//! The pipe's mutex is left out.

use std::collections::VecDeque;

use perch_policy::{Change, Era};
use perch_sched::{Life, Violation, hold};
use perch_workload::Op;

use super::channel::Message;
use super::system::System;
use super::thread::{Phase, Progress, Thread, Threads};
use crate::id::{CpuId, Id, IdVec, PipeId, TaskId};

/// Buffers of a pipe (`PIPE_DEF_BUFFERS`).
const BUFFERS: usize = 16;

#[derive(Debug, Default)]
struct Pipe {
    /// The messages, first come first served.
    messages: VecDeque<Message>,
    /// The messages that are left in each buffer in use.
    buffers: VecDeque<u32>,
    /// The messages that were written to the last of them.
    written: u32,
    /// Tasks that wait for a message, and those that wait for a buffer, first come first served.
    readers: VecDeque<TaskId>,
    writers: VecDeque<TaskId>,
    /// Those of them that a reader in its system call is about to wake.
    leaving: VecDeque<TaskId>,
}

impl Pipe {
    fn is_full(&self) -> bool {
        self.buffers.len() == BUFFERS
    }

    /// Adds a message, of which a page has room for `fits`. Returns whether there was room.
    fn put(&mut self, message: Message, fits: u32) -> bool {
        let full = self.is_full();
        match self.buffers.back_mut() {
            Some(left) if self.written < fits => {
                *left += 1;
                self.written += 1;
            }
            _ if full => return false,
            _ => {
                self.buffers.push_back(1);
                self.written = 1;
            }
        }
        self.messages.push_back(message);
        true
    }

    /// Takes out a message. Returns it, and whether that freed its page.
    fn take(&mut self) -> Option<(Message, bool)> {
        let message = self.messages.pop_front()?;
        let left = self.buffers.front_mut()?;
        *left -= 1;
        let freed = *left == 0;
        if freed {
            self.buffers.pop_front();
        }
        Some((message, freed))
    }

    /// Takes all tasks off the queue on which readers and writers wait before 5.5.
    fn all(&mut self) -> impl Iterator<Item = TaskId> {
        self.readers.drain(..).rev().chain(self.writers.drain(..).rev())
    }
}

/// All pipes of a run.
#[derive(Debug)]
pub struct Pipes {
    pipes: IdVec<PipeId, Pipe>,
    wakes: Wakes,
}

/// Whom a read or a write wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wakes {
    /// All that wait ([`Change::PipeWakesOne`] ended that).
    All,
    /// A read from a full pipe wakes a writer.
    OfFull,
    /// A read that frees a page of a full pipe wakes a writer ([`Change::PipeWakesForPage`]).
    ForPage,
}

impl Pipes {
    /// This many pipes of an era's kernel, all empty.
    pub fn new(n: usize, era: Era) -> Pipes {
        let wakes = match era {
            era if era.has(Change::PipeWakesForPage) => Wakes::ForPage,
            era if era.has(Change::PipeWakesOne) => Wakes::OfFull,
            _ => Wakes::All,
        };
        Pipes { pipes: (0..n).map(|_| Pipe::default()).collect(), wakes }
    }

    /// The running task writes a message of so many cache lines; it sleeps while the pipe is full.
    pub fn write<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        thread: &mut Thread,
        pipe: PipeId,
        lines: u32,
        fits: u32,
    ) -> Progress {
        let p = &mut self.pipes[pipe];
        let task = thread.task;
        let was_empty = p.messages.is_empty();
        if !p.put(Message { lines, writer: CpuId::of(cpu) }, fits) {
            thread.phase = Phase::Woken;
            p.writers.push_back(task);
            return Progress::Sleeps;
        }
        let mut wake = |wakee| {
            let cost = system.wake(wakee, cpu, task, true);
            system.charge_kernel(cpu, task, cost);
        };
        if self.wakes == Wakes::All {
            p.all().for_each(wake);
            return thread.done();
        }
        if was_empty {
            p.readers.pop_front().into_iter().for_each(&mut wake);
        }
        if thread.phase == Phase::Woken && !p.is_full() {
            p.writers.pop_front().into_iter().for_each(wake);
        }
        thread.done()
    }

    /// The running task reads a message; it sleeps until there is one.
    pub fn read<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        thread: &mut Thread,
        pipe: PipeId,
    ) -> Progress {
        let p = &mut self.pipes[pipe];
        let task = thread.task;
        if thread.phase != Phase::InCall {
            let was_full = p.is_full();
            let Some((Message { lines, writer }, freed)) = p.take() else {
                thread.phase = Phase::Woken;
                p.readers.push_back(task);
                return Progress::Sleeps;
            };
            let mut leaving = std::mem::take(&mut p.leaving);
            match self.wakes {
                Wakes::All if freed => leaving.extend(p.all()),
                Wakes::All => {}
                rule => {
                    if was_full && (freed || rule == Wakes::OfFull) {
                        leaving.extend(p.writers.pop_front());
                    }
                    if thread.phase == Phase::Woken && !p.messages.is_empty() {
                        leaving.extend(p.readers.pop_front());
                    }
                }
            }
            p.leaving = leaving;
            thread.phase = Phase::InCall;
            let cost = system.costs().transfer_ns(lines, writer.index(), cpu);
            system.charge_kernel(cpu, task, cost);
            // What it copies comes before whom it wakes.
            if !p.leaving.is_empty() && system.owes_work(task) {
                return Progress::Works;
            }
        }
        for wakee in p.leaving.drain(..) {
            let cost = system.wake(wakee, cpu, task, true);
            system.charge_kernel(cpu, task, cost);
        }
        thread.done()
    }
}

/// For the auditor.
impl Pipes {
    /// The tasks that sleep until there is a message, or room for one.
    pub fn sleepers(&self) -> impl Iterator<Item = TaskId> {
        let pipes = self.pipes.iter();
        pipes.flat_map(|p| p.readers.iter().chain(&p.writers).chain(&p.leaving).copied())
    }

    /// The buffers hold the messages; while a task waits there is nothing for it, or another one of
    /// its kind is awake that will wake it.
    ///
    /// # Errors
    /// The pipe in which this does not hold.
    pub fn check(&self, threads: &Threads, life: &dyn Fn(TaskId) -> Life) -> Result<(), Violation> {
        let mut awake: IdVec<PipeId, [bool; 2]> = self.pipes.iter().map(|_| [false; 2]).collect();
        let up = |l: Life| matches!(l, Life::Waking | Life::Queued | Life::Running);
        for (_, t) in threads.named().filter(|&(id, t)| t.phase != Phase::Fresh && up(life(id))) {
            match *t.op() {
                Op::ReadPipe { pipe } => {
                    awake[PipeId(pipe)][0] = true;
                    awake[PipeId(pipe)][1] |= t.phase == Phase::InCall;
                }
                Op::WritePipe { pipe, .. } => awake[PipeId(pipe)][1] = true,
                _ => {}
            }
        }
        for (number, p) in self.pipes.named() {
            let [reader, writer] = awake[number];
            let left = p.messages.len() as u64;
            let held: u64 = p.buffers.iter().copied().map(u64::from).sum();
            hold!(left == held, "pipe {number}: {left} messages, {held} in its buffers");
            hold!(
                p.readers.is_empty() || left == 0 || reader,
                "pipe {number}: {left} messages, nobody wakes {:?}",
                p.readers
            );
            hold!(
                p.writers.is_empty() || p.is_full() || writer,
                "pipe {number}: {} buffers, nobody wakes {:?}",
                p.buffers.len(),
                p.writers
            );
            hold!(
                p.leaving.is_empty() || reader,
                "pipe {number}: nobody wakes {:?}, who may go on",
                p.leaving
            );
        }
        Ok(())
    }
}

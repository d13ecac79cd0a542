// SPDX-License-Identifier: GPL-2.0-or-later
//! Threads of one process that wait for one another on futexes of their own, as schbench's do.
//!
//! Every task has one word, blocked or running, and a list of the tasks that posted themselves to
//! it. A task that posts a blocked word sets it running and makes a futex call; a task that waits
//! sleeps only if its word is still blocked when the kernel looks. The list is a stack: the last
//! task to come is the first to be woken.

use perch_workload::FutexCall;

use super::shared_line::SharedLine;
use super::system::System;
use super::thread::{Phase, Progress, Thread};
use crate::id::{IdVec, TaskId};

/// The data that a task shares with those that post to it or that it posts.
#[derive(Debug, Default)]
struct Seat {
    /// The futex's word is running: a task has posted it, and its own task has not waited since.
    posted: bool,
    /// The task sleeps in a futex call.
    asleep: bool,
    /// The tasks that posted themselves here, in that order.
    list: Vec<TaskId>,
    /// Of those, the tasks that its task is waking, the next one last.
    waking: Vec<TaskId>,
    /// The moment at which the task that woke it began to wake.
    stamp_ns: u64,
    line: SharedLine,
}

/// The futexes of all tasks, each made when a task first uses it.
#[derive(Debug, Default)]
pub struct Futexes {
    seats: IdVec<TaskId, Seat>,
}

impl Futexes {
    /// The tasks that sleep until another task posts them: for the auditor.
    pub fn sleepers(&self) -> impl Iterator<Item = TaskId> {
        let asleep = self.seats.named().filter(|(_, seat)| seat.asleep);
        asleep.map(|(task, _)| task)
    }

    /// The moment at which the task that woke this one began to wake.
    pub fn stamp_ns(&mut self, task: TaskId) -> u64 {
        self.seats.or_default(task).stamp_ns
    }

    /// The running task goes on with posting itself to task `to`; `call` is the futex call, if
    /// there is one.
    pub fn post<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        thread: &mut Thread,
        to: TaskId,
        call: FutexCall,
    ) -> Progress {
        let task = thread.task;
        if thread.phase != Phase::Fresh {
            self.wake_sleeper(system, to, cpu, task);
            return thread.done();
        }
        self.touch(system, task, cpu, task, 1).posted = false;
        let owner = self.seats.or_default(to);
        owner.list.push(task);
        if !std::mem::replace(&mut owner.posted, true) {
            self.touch(system, to, cpu, task, call.lines);
            return thread.begin_call(system, cpu, call.work);
        }
        self.touch(system, to, cpu, task, 1);
        thread.done()
    }

    /// The running task goes on with waiting to be posted; `call` is the futex call, if there is
    /// one.
    pub fn wait<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        thread: &mut Thread,
        call: FutexCall,
    ) -> Progress {
        let (task, phase) = (thread.task, thread.phase);
        let seat = self.seats.or_default(task);
        if std::mem::take(&mut seat.posted) {
            let slept = phase == Phase::Woken;
            self.touch(system, task, cpu, task, if slept { call.lines } else { 1 });
            return thread.done();
        }
        if phase != Phase::InCall {
            return thread.begin_call(system, cpu, call.work);
        }
        seat.asleep = true;
        thread.phase = Phase::Woken;
        Progress::Sleeps
    }

    /// The running task goes on with posting all tasks that posted themselves to it, the last one
    /// first, with one timestamp from before the first; it blocks its own word before that.
    pub fn wake_all<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        thread: &mut Thread,
        call: FutexCall,
    ) -> Progress {
        let task = thread.task;
        if thread.phase == Phase::Fresh {
            let seat = self.touch(system, task, cpu, task, 1);
            seat.posted = false;
            let waking = std::mem::take(&mut seat.list);
            let now_ns = system.now_ns();
            for &waiter in &waking {
                self.seats.or_default(waiter).stamp_ns = now_ns;
            }
            self.seats.or_default(task).waking = waking;
        } else if let Some(waiter) = self.seats.or_default(task).waking.pop() {
            self.wake_sleeper(system, waiter, cpu, task);
        }
        match self.seats.or_default(task).waking.last() {
            Some(&waiter) => {
                let seat = self.touch(system, waiter, cpu, task, call.lines);
                seat.posted = true;
                thread.begin_call(system, cpu, call.work)
            }
            None => thread.done(),
        }
    }

    /// The running task writes this many lines of a seat: the word, the list and the kernel's part.
    fn touch<S: System>(
        &mut self,
        system: &mut S,
        seat: TaskId,
        cpu: usize,
        task: TaskId,
        lines: u32,
    ) -> &mut Seat {
        let seat = self.seats.or_default(seat);
        let cost = seat.line.write(system, cpu);
        system.charge_kernel(cpu, task, cost * u64::from(lines));
        seat
    }

    /// The kernel's part of a post: wakes the task that sleeps on the word.
    fn wake_sleeper<S: System>(&mut self, system: &mut S, seat: TaskId, cpu: usize, task: TaskId) {
        if std::mem::take(&mut self.seats.or_default(seat).asleep) {
            let cost = system.wake(seat, cpu, task, false);
            system.charge_kernel(cpu, task, cost);
        }
    }
}

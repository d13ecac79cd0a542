// SPDX-License-Identifier: GPL-2.0-or-later
//! Condition variables, and barriers that are made of them as rt-app makes its own.
//!
//! Waiting for one takes four operations, as in glibc: the task puts itself on the list, unlocks
//! the mutex, sleeps unless another task has taken it off the list meanwhile, and locks the mutex
//! again. So no signal is lost between the second operation and the third. A task that signals
//! takes the first task off the list and makes a futex call, unless the list is empty; a
//! signal that finds the list empty is lost.

use std::collections::VecDeque;

use perch_sched::{Violation, hold};
use perch_workload::{FutexCall, Op};

use super::shared_line::SharedLine;
use super::system::System;
use super::thread::{Phase, Progress, Thread};
use crate::id::{ConditionId, IdVec, TaskId};

/// A condition variable.
#[derive(Debug, Default)]
struct Condition {
    /// The tasks that wait and were not signalled, first come first served.
    waiting: VecDeque<TaskId>,
    /// Of those and of the signalled ones, the tasks that sleep.
    asleep: Vec<TaskId>,
    /// Pairs of the task that signals and the task that it signalled, until the former's futex call
    /// is done.
    signalled: VecDeque<(TaskId, TaskId)>,
    /// Of a barrier: number of tasks that came and did not leave.
    arrived: u32,
    line: SharedLine,
}

impl Condition {
    /// The running task writes this many lines of it and of the kernel's part of it.
    fn touch<S: System>(&mut self, system: &mut S, cpu: usize, task: TaskId, lines: u32) {
        let cost = self.line.write(system, cpu);
        system.charge_kernel(cpu, task, cost * u64::from(lines));
    }

    /// The running task goes on with sleeping until it is signalled.
    fn wait<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        thread: &mut Thread,
        call: FutexCall,
    ) -> Progress {
        let (task, phase) = (thread.task, thread.phase);
        if !self.waiting.contains(&task) {
            let lines = if phase == Phase::Woken { call.lines } else { 1 };
            self.touch(system, cpu, task, lines);
            return thread.done();
        }
        if phase != Phase::InCall {
            return thread.begin_call(system, cpu, call.work);
        }
        self.asleep.push(task);
        thread.phase = Phase::Woken;
        Progress::Sleeps
    }

    /// The running task goes on with signalling the first `most` of the tasks that wait.
    fn signal<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        thread: &mut Thread,
        most: usize,
        call: FutexCall,
    ) -> Progress {
        let task = thread.task;
        if thread.phase == Phase::Fresh {
            let n = self.waiting.len().min(most);
            if n > 0 {
                let woken = self.waiting.drain(..n);
                self.signalled.extend(woken.map(|woken| (task, woken)));
                self.touch(system, cpu, task, call.lines);
                return thread.begin_call(system, cpu, call.work);
            }
            self.touch(system, cpu, task, 1);
            return thread.done();
        }
        let (mine, others): (VecDeque<_>, _) =
            self.signalled.drain(..).partition(|&(by, _)| by == task);
        self.signalled = others;
        for (_, woken) in mine {
            // A task that was not asleep yet has seen the signal by itself.
            let Some(at) = self.asleep.iter().position(|&sleeper| sleeper == woken) else {
                continue;
            };
            self.asleep.remove(at);
            let cost = system.wake(woken, cpu, task, false);
            system.charge_kernel(cpu, task, cost);
        }
        thread.done()
    }

    /// The running task comes to a barrier of `users`; the last one goes on at operation `last`.
    fn arrive<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        thread: &mut Thread,
        users: u32,
        last: u32,
    ) -> Progress {
        self.touch(system, cpu, thread.task, 1);
        if self.arrived + 1 >= users {
            thread.pc = last;
            return Progress::Done;
        }
        self.arrived += 1;
        thread.done()
    }
}

/// All condition variables of a run, each made when a task first uses it.
#[derive(Debug, Default)]
pub struct Conditions {
    conditions: IdVec<ConditionId, Condition>,
}

impl Conditions {
    /// The running task goes on with an operation on a condition variable. A function of its own:
    /// few workloads have them.
    #[inline(never)]
    pub fn operate<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        thread: &mut Thread,
        op: Op,
    ) -> Progress {
        match op {
            Op::Enlist { condition } => {
                let c = self.named(condition);
                c.waiting.push_back(thread.task);
                c.touch(system, cpu, thread.task, 1);
                thread.done()
            }
            Op::Await { condition, call } => self.named(condition).wait(system, cpu, thread, call),
            Op::Signal { condition, call } => {
                self.named(condition).signal(system, cpu, thread, 1, call)
            }
            Op::Broadcast { condition, call } => {
                self.named(condition).signal(system, cpu, thread, usize::MAX, call)
            }
            Op::Gate { condition, users, last } => {
                self.named(condition).arrive(system, cpu, thread, users, last)
            }
            Op::Ungate { condition } => {
                self.named(condition).arrived -= 1;
                thread.done()
            }
            _ => unreachable!("{op:?} is about no condition variable"),
        }
    }

    fn named(&mut self, condition: u32) -> &mut Condition {
        self.conditions.or_default(ConditionId(condition))
    }
}

/// For the auditor.
impl Conditions {
    /// The tasks that sleep until they are signalled.
    pub fn sleepers(&self) -> impl Iterator<Item = TaskId> {
        self.conditions.iter().flat_map(|c| c.asleep.iter().copied())
    }

    /// A task that sleeps on a condition variable was not signalled, or is about to be woken.
    ///
    /// # Errors
    /// The condition variable of which this does not hold.
    pub fn check(&self) -> Result<(), Violation> {
        for (number, c) in self.conditions.named() {
            let signalled = |task| c.signalled.iter().any(|&(_, woken)| woken == task);
            let in_order = |task| c.waiting.contains(&task) || signalled(task);
            let lost = c.asleep.iter().find(|&&task| !in_order(task));
            hold!(
                lost.is_none(),
                "condition {number}: nobody will wake {lost:?}, which was signalled"
            );
        }
        Ok(())
    }
}

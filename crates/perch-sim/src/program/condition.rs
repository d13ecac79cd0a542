// SPDX-License-Identifier: GPL-2.0-or-later
//! Condition variables, and barriers that are made of them as rt-app makes its own.
//!
//! Waiting for one takes four operations, as glibc has it: the task puts itself on the list,
//! unlocks the mutex, sleeps unless it was taken off the list meanwhile, and locks the mutex
//! again. So nothing is lost between the second and the third. Who signals takes the first off
//! the list and makes a futex call, unless nobody is there; nobody remembers a signal that found
//! nobody.

use std::collections::VecDeque;

use perch_workload::{FutexCall, Op};

use crate::id::{ConditionId, IdVec, TaskId};

use super::mutex::LastWriter;
use super::{Interpreter, Phase, Progress, System};

/// The condition variables of a run, each made when a task first uses it.
pub type Conditions = IdVec<ConditionId, Condition>;

/// A condition variable.
#[derive(Debug, Default)]
pub struct Condition {
    /// Who waits and was not signalled, first come first served.
    waiting: VecDeque<TaskId>,
    /// Of those and of the next, who sleeps.
    asleep: Vec<TaskId>,
    /// Who was signalled and by whom, until that one's futex call is done.
    signalled: VecDeque<(TaskId, TaskId)>,
    /// Of a barrier: number of tasks that came and did not leave.
    arrived: u32,
    /// Who wrote it last.
    line: LastWriter,
}

impl Condition {
    /// Who sleeps on it: for the auditor.
    pub fn sleepers(&self) -> &[TaskId] {
        &self.asleep
    }

    /// Whether somebody will wake this one, or nobody has to: for the auditor.
    pub fn is_in_order(&self, task: TaskId) -> bool {
        self.waiting.contains(&task) || self.signalled.iter().any(|&(_, woken)| woken == task)
    }
}

impl Interpreter {
    /// The running task goes on with an operation on a condition variable. A function of its own:
    /// few workloads have them.
    #[inline(never)]
    pub(super) fn on_condition<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: TaskId,
        op: Op,
    ) -> Progress {
        match op {
            Op::Enlist { condition } => {
                let condition = ConditionId(condition);
                self.condition(condition).waiting.push_back(task);
                self.touch_condition(system, condition, cpu, task, 1);
            }
            Op::Await { condition, call } => {
                return self.await_signal(system, cpu, task, ConditionId(condition), call);
            }
            Op::Signal { condition, call } => {
                return self.signal(system, cpu, task, ConditionId(condition), 1, call);
            }
            Op::Broadcast { condition, call } => {
                return self.signal(system, cpu, task, ConditionId(condition), usize::MAX, call);
            }
            Op::Gate {
                condition,
                users,
                last,
            } => {
                let condition = ConditionId(condition);
                self.touch_condition(system, condition, cpu, task, 1);
                let gate = self.condition(condition);
                if gate.arrived + 1 >= users {
                    self.threads[task].pc = last;
                    return Progress::Done;
                }
                gate.arrived += 1;
            }
            Op::Ungate { condition } => self.condition(ConditionId(condition)).arrived -= 1,
            _ => unreachable!("{op:?} is about no condition variable"),
        }
        self.done(task)
    }

    fn condition(&mut self, condition: ConditionId) -> &mut Condition {
        self.conditions.or_default(condition)
    }

    /// The running task writes so many lines of it and of what the kernel keeps of it.
    fn touch_condition<S: System>(
        &mut self,
        system: &mut S,
        condition: ConditionId,
        cpu: usize,
        task: TaskId,
        lines: u32,
    ) {
        let cost = self.condition(condition).line.write(system, cpu);
        system.charge_kernel(cpu, task, cost * u64::from(lines));
    }

    fn await_signal<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: TaskId,
        condition: ConditionId,
        call: FutexCall,
    ) -> Progress {
        let phase = self.threads[task].phase;
        let c = self.condition(condition);
        if !c.waiting.contains(&task) {
            let lines = if phase == Phase::Woken { call.lines } else { 1 };
            self.touch_condition(system, condition, cpu, task, lines);
            return self.done(task);
        }
        if phase != Phase::InCall {
            return self.begin_call(system, cpu, task, call.work);
        }
        c.asleep.push(task);
        self.threads[task].phase = Phase::Woken;
        Progress::Sleeps
    }

    /// `most`: how many are signalled.
    fn signal<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: TaskId,
        condition: ConditionId,
        most: usize,
        call: FutexCall,
    ) -> Progress {
        if self.threads[task].phase == Phase::Fresh {
            let c = self.condition(condition);
            let n = c.waiting.len().min(most);
            if n > 0 {
                c.signalled
                    .extend(c.waiting.drain(..n).map(|woken| (task, woken)));
                self.touch_condition(system, condition, cpu, task, call.lines);
                return self.begin_call(system, cpu, task, call.work);
            }
            self.touch_condition(system, condition, cpu, task, 1);
            return self.done(task);
        }
        let c = self.condition(condition);
        let (mine, others): (VecDeque<_>, _) =
            c.signalled.drain(..).partition(|&(by, _)| by == task);
        c.signalled = others;
        for (_, woken) in mine {
            // Who was not asleep yet has seen it by itself.
            let c = self.condition(condition);
            let Some(at) = c.asleep.iter().position(|&sleeper| sleeper == woken) else {
                continue;
            };
            c.asleep.remove(at);
            let cost = system.wake(woken, cpu, task, false);
            system.charge_kernel(cpu, task, cost);
        }
        self.done(task)
    }
}

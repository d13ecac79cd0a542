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

use super::mutex::Line;
use super::{Interpreter, Phase, Step, System};

/// A condition variable.
#[derive(Debug, Default)]
pub struct Condition {
    /// Who waits and was not signalled, first come first served.
    waiting: VecDeque<u32>,
    /// Of those and of the next, who sleeps.
    asleep: Vec<u32>,
    /// Who was signalled and by whom, until that one's futex call is done.
    signalled: VecDeque<(u32, u32)>,
    /// Of a barrier: who came and did not leave.
    inside: u32,
    /// Who wrote it last.
    line: Line,
}

impl Condition {
    /// Who sleeps on it: for the auditor.
    pub fn sleepers(&self) -> &[u32] {
        &self.asleep
    }

    /// Whether somebody will wake this one, or nobody has to: for the auditor.
    pub fn is_in_order(&self, task: u32) -> bool {
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
        task: u32,
        op: Op,
    ) -> Step {
        match op {
            Op::Enlist { condition } => {
                self.condition(condition).waiting.push_back(task);
                self.touch_condition(system, condition, cpu, task, 1);
            }
            Op::Await { condition, call } => {
                return self.await_signal(system, cpu, task, condition, call);
            }
            Op::Signal { condition, call } => {
                return self.signal(system, cpu, task, condition, 1, call);
            }
            Op::Broadcast { condition, call } => {
                return self.signal(system, cpu, task, condition, usize::MAX, call);
            }
            Op::Gate {
                condition,
                users,
                last,
            } => {
                self.touch_condition(system, condition, cpu, task, 1);
                let gate = self.condition(condition);
                if gate.inside + 1 >= users {
                    self.threads[task as usize].pc = last;
                    return Step::Done;
                }
                gate.inside += 1;
            }
            Op::Ungate { condition } => self.condition(condition).inside -= 1,
            _ => unreachable!("{op:?} is about no condition variable"),
        }
        self.done(task)
    }

    fn condition(&mut self, condition: u32) -> &mut Condition {
        let n = self.conditions.len().max(condition as usize + 1);
        self.conditions.resize_with(n, Condition::default);
        &mut self.conditions[condition as usize]
    }

    /// The running task writes so many lines of it and of what the kernel keeps of it.
    fn touch_condition<S: System>(
        &mut self,
        system: &mut S,
        condition: u32,
        cpu: usize,
        task: u32,
        lines: u32,
    ) {
        let cost = self.condition(condition).line.write(system, cpu);
        system.charge_kernel(cpu, task, cost * u64::from(lines));
    }

    fn await_signal<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: u32,
        condition: u32,
        call: FutexCall,
    ) -> Step {
        let phase = self.threads[task as usize].phase;
        let c = self.condition(condition);
        if !c.waiting.contains(&task) {
            let lines = if phase == Phase::Woken { call.lines } else { 1 };
            self.touch_condition(system, condition, cpu, task, lines);
            return self.done(task);
        }
        if phase != Phase::Inside {
            return self.inside(system, cpu, task, call.work);
        }
        c.asleep.push(task);
        self.threads[task as usize].phase = Phase::Woken;
        Step::Sleeps
    }

    /// `most`: how many are signalled.
    fn signal<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: u32,
        condition: u32,
        most: usize,
        call: FutexCall,
    ) -> Step {
        if self.threads[task as usize].phase == Phase::Fresh {
            let c = self.condition(condition);
            let n = c.waiting.len().min(most);
            if n > 0 {
                c.signalled
                    .extend(c.waiting.drain(..n).map(|woken| (task, woken)));
                self.touch_condition(system, condition, cpu, task, call.lines);
                return self.inside(system, cpu, task, call.work);
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

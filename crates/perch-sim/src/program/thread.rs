// SPDX-License-Identifier: GPL-2.0-or-later
//! A task's own part of the interpreter: its program, and how far the task has come in it.

use std::sync::Arc;

use perch_engine::{Dist, Random};
use perch_policy::CpuMask;
use perch_workload::Op;

use super::system::System;
use crate::id::{CpuId, IdVec, TaskId};

/// The programs of all tasks.
pub type Threads = IdVec<TaskId, Thread>;

/// How far a task has come when the interpreter turns away from an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The operation is done.
    Done,
    /// The task has to work before it goes on with the same operation.
    Works,
    /// The task sleeps, and goes on with the same operation when it is woken.
    Sleeps,
}

/// How far a task is in an operation that takes several steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// The task has not begun it.
    #[default]
    Fresh,
    /// The task is in the system call that may put it to sleep, or wake another task.
    InCall,
    /// The task slept and was woken.
    Woken,
}

/// A task's program and how far the task is in it.
#[derive(Debug)]
pub struct Thread {
    program: Arc<[Op]>,
    random: Random,
    /// Rounds of the loop under way that are done.
    pub rounds: u64,
    /// The moment at which its period began, see [`Op::Next`].
    pub timer_ns: u64,
    pub task: TaskId,
    /// Its next operation.
    pub pc: u32,
    /// The number that it drew last, see [`Op::Draw`].
    pub drawn: u32,
    /// The CPU on which it began a streak whose end it has not seen.
    pub streaks_on: Option<CpuId>,
    /// How far it is in that operation.
    pub phase: Phase,
}

impl Thread {
    /// A task that has done nothing yet; `random` has its random numbers.
    pub fn new(task: TaskId, program: Arc<[Op]>, random: Random) -> Thread {
        Thread {
            program,
            random,
            rounds: 0,
            timer_ns: 0,
            task,
            pc: 0,
            drawn: 0,
            streaks_on: None,
            phase: Phase::Fresh,
        }
    }

    /// The operation that is next, or under way.
    #[inline(always)]
    pub fn op(&self) -> &Op {
        &self.program[self.pc as usize]
    }

    /// The operations from the one that the task did last to the one `n` - 1 behind it; none if the
    /// program ends before.
    pub fn ops_from_last(&self, n: usize) -> &[Op] {
        let last = self.pc as usize - 1;
        self.program.get(last..last + n).unwrap_or_default()
    }

    /// An operation of one step is done: the task goes on to its next one.
    #[inline(always)]
    pub fn step(&mut self) {
        self.pc += 1;
    }

    /// The operation is done: the task goes on to its next one.
    #[inline(always)]
    pub fn done(&mut self) -> Progress {
        self.phase = Phase::Fresh;
        self.pc += 1;
        Progress::Done
    }

    /// The task has done a round of a loop. The next round begins at `to`, unless this one was the
    /// last of `times`.
    #[inline(always)]
    pub fn repeat(&mut self, to: u32, times: u64) {
        self.rounds += 1;
        if self.rounds < times {
            self.pc = to;
        } else {
            self.rounds = 0;
            self.pc += 1;
        }
    }

    /// The task works in the kernel before its operation goes on.
    #[inline]
    pub fn begin_call<S: System>(&mut self, system: &mut S, cpu: usize, work: Dist) -> Progress {
        self.phase = Phase::InCall;
        let work_ns = self.sample(work);
        system.set_kernel_work(cpu, self.task, work_ns);
        Progress::Works
    }

    /// Draws an amount from the task's own random numbers.
    #[inline]
    pub fn sample(&mut self, amount: Dist) -> u64 {
        amount.sample(&mut self.random)
    }

    /// Draws one of these CPUs from the task's own random numbers; `None` if there are none.
    pub fn draw_cpu(&mut self, among: &CpuMask) -> Option<usize> {
        let nth = self.random.below(u64::from(among.weight())) as usize;
        among.iter().nth(nth)
    }
}

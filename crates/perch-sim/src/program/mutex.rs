// SPDX-License-Identifier: GPL-2.0-or-later
//! Mutexes as glibc makes them of futexes.
//!
//! A mutex is a word: free, held, or held and perhaps waited for. Taking a free one is one atomic
//! instruction. A task that finds the mutex held marks it as waited for and sleeps in the kernel; a
//! task that unlocks a marked one sets it free and only then asks the kernel to wake the first
//! sleeper. The owner hands the mutex to nobody: whichever task comes first takes it. That is nearly
//! always the task that has just unlocked it, and the woken task sleeps again. A task that has slept
//! marks the mutex when it takes it, because it cannot know whether others still sleep ("Futexes
//! Are Tricky", Drepper 2011).

use std::collections::VecDeque;

use perch_engine::Dist;
use perch_sched::{Life, Violation, hold};
use perch_workload::Op;

use super::shared_line::SharedLine;
use super::system::System;
use super::thread::{Phase, Progress, Thread, Threads};
use crate::id::{CpuId, IdVec, MutexId, TaskId};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Word {
    /// 0.
    #[default]
    Free,
    /// 1: held, and no task waits.
    Held,
    /// 2: held, and a task may wait.
    Contended,
}

#[derive(Debug, Default)]
struct Mutex {
    word: Word,
    /// The task that holds it.
    owner: Option<TaskId>,
    /// The tasks that sleep on it, first come first served.
    waiting: VecDeque<TaskId>,
    line: SharedLine,
    /// The CPU whose streak takes and frees it time and again; its word is that of the streak's
    /// beginning.
    streak: Option<CpuId>,
    /// Times in a row that a task came for it and found it free.
    calm: u32,
}

/// All mutexes of a run.
#[derive(Debug)]
pub struct Mutexes {
    mutexes: IdVec<MutexId, Mutex>,
}

impl Mutexes {
    /// This many mutexes, all free.
    pub fn new(n: usize) -> Mutexes {
        Mutexes { mutexes: (0..n).map(|_| Mutex::default()).collect() }
    }

    /// Returns whether the run has no mutexes.
    pub fn is_empty(&self) -> bool {
        self.mutexes.is_empty()
    }

    /// The running task goes on with locking a mutex that no streak holds; `wait` is the work of a
    /// futex call until the task falls asleep.
    pub fn lock<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        thread: &mut Thread,
        mutex: MutexId,
        wait: Dist,
    ) -> Progress {
        let (m, phase) = (&mut self.mutexes[mutex], thread.phase);
        // The kernel sleeps only if the word is still marked when it looks.
        if phase == Phase::InCall && m.word == Word::Contended {
            m.waiting.push_back(thread.task);
            thread.phase = Phase::Woken;
            return Progress::Sleeps;
        }
        let free = m.word == Word::Free;
        // The first attempt writes a word that says no task waits, every later one marks it.
        m.word = match (free, phase) {
            (true, Phase::Fresh) => Word::Held,
            _ => Word::Contended,
        };
        m.calm = if free { m.calm.saturating_add(1) } else { 0 };
        if free {
            m.owner = Some(thread.task);
        }
        let cost = m.line.write(system, cpu);
        system.charge(thread.task, cost);
        if free {
            return thread.done();
        }
        thread.begin_call(system, cpu, wait)
    }

    /// The running task goes on with unlocking a mutex; `wake` is the work of a futex call until
    /// the wake-up.
    ///
    /// # Panics
    /// When it does not hold it.
    pub fn unlock<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        thread: &mut Thread,
        mutex: MutexId,
        wake: Dist,
    ) -> Progress {
        let m = &mut self.mutexes[mutex];
        let task = thread.task;
        if thread.phase == Phase::Fresh {
            assert_eq!(m.owner.take(), Some(task), "mutex {mutex} is another's");
            let before = std::mem::take(&mut m.word);
            let cost = m.line.write(system, cpu);
            system.charge(task, cost);
            if before == Word::Contended {
                return thread.begin_call(system, cpu, wake);
            }
        } else if let Some(waiter) = m.waiting.pop_front() {
            let cost = system.wake(waiter, cpu, task, false);
            system.charge_kernel(cpu, task, cost);
        }
        thread.done()
    }
}

/// For streaks.
impl Mutexes {
    /// The CPU whose streak takes and frees the mutex time and again.
    #[inline]
    pub fn streak(&self, mutex: MutexId) -> Option<CpuId> {
        self.mutexes[mutex].streak
    }

    /// Returns whether the mutex looks as if its owner could have it for itself. If the owner cannot,
    /// a streak begins in vain, and nothing else depends on this.
    pub fn is_calm(&self, mutex: MutexId) -> bool {
        let m = &self.mutexes[mutex];
        m.calm >= 2 && m.word == Word::Held
    }

    /// A streak on this CPU takes and frees the mutex time and again.
    pub fn begin_streak(&mut self, mutex: MutexId, cpu: CpuId) {
        self.mutexes[mutex].streak = Some(cpu);
    }

    /// The streak of the mutex is over, and its task holds the mutex or has freed it.
    pub fn end_streak(&mut self, mutex: MutexId, held: bool) {
        let m = &mut self.mutexes[mutex];
        m.streak = None;
        if !held {
            m.word = Word::Free;
            m.owner = None;
        }
    }
}

/// For the auditor.
impl Mutexes {
    /// The tasks that sleep until they are woken to take a mutex.
    pub fn sleepers(&self) -> impl Iterator<Item = TaskId> {
        self.mutexes.iter().flat_map(|m| m.waiting.iter().copied())
    }

    /// A mutex is free exactly when no task holds it, and a task that sleeps on one will be woken:
    /// its owner sees that a task waits for it, or a task is about to wake the sleeper, or another
    /// sleeper was woken and will mark the mutex again.
    ///
    /// # Errors
    /// The mutex of which this does not hold.
    pub fn check(&self, threads: &Threads, life: &dyn Fn(TaskId) -> Life) -> Result<(), Violation> {
        let mutexes = self.mutexes.iter();
        let mut awake: IdVec<MutexId, bool> = mutexes.map(|_| false).collect();
        let up = |l: Life| matches!(l, Life::Waking | Life::Queued | Life::Running);
        for (_, t) in threads.named().filter(|&(id, _)| up(life(id))) {
            match (*t.op(), t.phase) {
                (Op::Unlock { first, .. }, Phase::InCall)
                | (Op::Lock { first, .. }, Phase::InCall | Phase::Woken) => {
                    awake[MutexId(first + t.drawn)] = true;
                }
                _ => {}
            }
        }
        for (number, m) in self.mutexes.named() {
            hold!(
                m.owner.is_none() == (m.word == Word::Free),
                "mutex {number} is {:?}, held by {:?}",
                m.word,
                m.owner
            );
            let dead = |&t: &TaskId| matches!(life(t), Life::Unborn | Life::Dead);
            hold!(
                !m.owner.as_ref().is_some_and(dead),
                "mutex {number} is held by {:?}, which is gone",
                m.owner
            );
            hold!(
                m.waiting.is_empty() || m.word == Word::Contended || awake[number],
                "mutex {number} is {:?}, {:?} asleep, nobody will wake them",
                m.word,
                m.waiting
            );
        }
        Ok(())
    }
}

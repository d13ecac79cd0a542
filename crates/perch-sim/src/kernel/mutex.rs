// SPDX-License-Identifier: GPL-2.0-or-later
//! What threads of one process share: mutexes as glibc makes them of futexes, and counters.
//!
//! A mutex is a word: free, held, or held and perhaps waited for. Taking a free one is one atomic
//! instruction. Who finds it held marks it as waited for and sleeps in the kernel; who unlocks a
//! marked one sets it free and only then asks the kernel to wake the first sleeper. Nothing is
//! handed over: whoever comes first takes it, which is nearly always the one that has just
//! unlocked it, and the woken one sleeps again. A task that has slept marks the mutex when it
//! takes it, for it cannot know whether others still sleep ("Futexes Are Tricky", Drepper 2011).

use std::collections::VecDeque;

use super::Kernel;
use super::task::{Life, Phase};
use super::wake::Waker;
use crate::engine::Dist;

/// The word of a mutex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Word {
    /// 0.
    #[default]
    Free,
    /// 1: held, nobody waits.
    Held,
    /// 2: held, somebody may wait.
    Contended,
}

/// A cache line that several CPUs write: who did last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line(Option<u32>);

/// A mutex.
#[derive(Debug, Default)]
pub struct Mutex {
    /// Its word.
    pub word: Word,
    /// Who holds it.
    pub owner: Option<u32>,
    /// Who sleeps on it, first come first served.
    pub waiting: VecDeque<u32>,
    line: Line,
    /// The CPU whose streak holds and frees it time and again; its word is that of the beginning.
    pub streak: Option<u32>,
    /// Times in a row that it was free when somebody came for it.
    calm: u32,
}

impl Mutex {
    /// Whether it looks as if its owner could have it for itself: nothing depends on it but how
    /// often a streak is begun in vain.
    pub fn is_calm(&self) -> bool {
        self.calm >= 2 && self.word == Word::Held
    }
}

/// A counter.
#[derive(Debug, Default)]
pub struct Counter {
    next: u64,
    line: Line,
}

/// What becomes of a task after a step of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The operation is done.
    Done,
    /// It has to work before it goes on with the same operation.
    Works,
    /// It has left the CPU.
    Left,
}

impl Kernel<'_> {
    /// What writing a shared line costs on this CPU.
    pub(super) fn write_line(&mut self, line: Line, cpu: usize) -> (Line, u64) {
        let cost = match line.0 {
            Some(from) if from as usize != cpu => self.costs.transfer_ns(1, from as usize, cpu),
            _ => 0,
        };
        (Line(Some(cpu as u32)), cost)
    }

    fn touch_mutex(&mut self, mutex: usize, cpu: usize, task: u32) {
        let (line, cost) = self.write_line(self.mutexes[mutex].line, cpu);
        self.mutexes[mutex].line = line;
        self.tasks[task as usize].debt_ns += cost;
    }

    /// The running task takes the next number of a counter.
    pub(super) fn draw(&mut self, cpu: usize, task: u32, counter: u32, of: u32) {
        let counter = counter as usize;
        let (line, cost) = self.write_line(self.counters[counter].line, cpu);
        let c = &mut self.counters[counter];
        c.line = line;
        let number = c.next;
        c.next += 1;
        let t = &mut self.tasks[task as usize];
        t.drawn = (number % u64::from(of)) as u32;
        t.debt_ns += cost;
    }

    /// The running task goes on with locking a mutex; `wait` is the work of a futex call up to
    /// falling asleep.
    pub(super) fn lock(&mut self, cpu: usize, task: u32, first: u32, wait: Dist) -> Step {
        let t = &self.tasks[task as usize];
        let (mutex, phase) = ((first + t.drawn) as usize, t.phase);
        if let Some(cpu) = self.mutexes[mutex].streak {
            self.end_streak(cpu as usize);
        }
        let m = &mut self.mutexes[mutex];
        // The kernel sleeps only if the word is still marked when it looks.
        if phase == Phase::Inside && m.word == Word::Contended {
            m.waiting.push_back(task);
            self.tasks[task as usize].phase = Phase::Woken;
            self.block(cpu, task);
            return Step::Left;
        }
        let free = m.word == Word::Free;
        // The first attempt is for a word that says nobody waits, every later one marks it.
        m.word = match (free, phase) {
            (true, Phase::Fresh) => Word::Held,
            _ => Word::Contended,
        };
        m.calm = if free { m.calm.saturating_add(1) } else { 0 };
        if free {
            m.owner = Some(task);
        }
        self.touch_mutex(mutex, cpu, task);
        let t = &mut self.tasks[task as usize];
        if free {
            t.phase = Phase::Fresh;
            t.pc += 1;
            return Step::Done;
        }
        t.phase = Phase::Inside;
        t.left_ns = wait.sample(&mut t.random);
        let work_ns = t.left_ns;
        self.note_kernel(cpu, work_ns);
        Step::Works
    }

    /// The running task goes on with unlocking a mutex; `wake` is the work of a futex call up to
    /// the wake-up.
    ///
    /// # Panics
    /// When it does not hold it.
    pub(super) fn unlock(&mut self, cpu: usize, task: u32, first: u32, wake: Dist) -> Step {
        let t = &self.tasks[task as usize];
        let (mutex, phase) = ((first + t.drawn) as usize, t.phase);
        if phase == Phase::Fresh {
            let m = &mut self.mutexes[mutex];
            assert_eq!(m.owner.take(), Some(task), "mutex {mutex} is another's");
            let before = std::mem::take(&mut m.word);
            self.touch_mutex(mutex, cpu, task);
            if before == Word::Contended {
                let t = &mut self.tasks[task as usize];
                t.phase = Phase::Inside;
                t.left_ns = wake.sample(&mut t.random);
                let work_ns = t.left_ns;
                self.note_kernel(cpu, work_ns);
                return Step::Works;
            }
        } else if let Some(waiter) = self.mutexes[mutex].waiting.pop_front() {
            debug_assert_eq!(self.tasks[waiter as usize].life, Life::Asleep);
            let cost = self.wake(waiter, cpu, Waker::Task(task), false);
            self.charge_kernel(cpu, task, cost);
        }
        let t = &mut self.tasks[task as usize];
        t.phase = Phase::Fresh;
        t.pc += 1;
        Step::Done
    }
}

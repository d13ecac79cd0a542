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

use perch_engine::Dist;

use crate::id::{CounterId, CpuId, Id, MutexId, TaskId};

use super::{Interpreter, Phase, Progress, System};

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

/// A cache line that several CPUs write: the CPU that did last.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastWriter(Option<CpuId>);

/// A mutex.
#[derive(Debug, Default)]
pub struct Mutex {
    /// Its word.
    pub word: Word,
    /// Who holds it.
    pub owner: Option<TaskId>,
    /// Who sleeps on it, first come first served.
    pub waiting: VecDeque<TaskId>,
    line: LastWriter,
    /// The CPU whose streak holds and frees it time and again; its word is that of the beginning.
    pub streak: Option<CpuId>,
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
    line: LastWriter,
}

impl LastWriter {
    /// A CPU writes the line. Returns what that costs, nanoseconds.
    pub fn write<S: System>(&mut self, system: &S, cpu: usize) -> u64 {
        match self.0.replace(CpuId::of(cpu)) {
            Some(from) if from.index() != cpu => system.costs().transfer_ns(1, from.index(), cpu),
            _ => 0,
        }
    }
}

impl Interpreter {
    /// The running task takes the next number of a counter.
    pub(super) fn draw<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: TaskId,
        counter: CounterId,
        of: u32,
    ) {
        let c = &mut self.counters[counter];
        let cost = c.line.write(system, cpu);
        let number = c.next;
        c.next += 1;
        self.threads[task].drawn = (number % u64::from(of)) as u32;
        system.charge(task, cost);
    }

    /// The running task goes on with locking a mutex; `wait` is the work of a futex call up to
    /// falling asleep.
    pub(super) fn lock<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: TaskId,
        first: u32,
        wait: Dist,
    ) -> Progress {
        let t = &self.threads[task];
        let (mutex, phase) = (MutexId(first + t.drawn), t.phase);
        if let Some(cpu) = self.mutexes[mutex].streak {
            system.end_streak(cpu.index());
            self.see_streak(system, cpu.index());
        }
        let m = &mut self.mutexes[mutex];
        // The kernel sleeps only if the word is still marked when it looks.
        if phase == Phase::InCall && m.word == Word::Contended {
            m.waiting.push_back(task);
            self.threads[task].phase = Phase::Woken;
            return Progress::Sleeps;
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
        let cost = m.line.write(system, cpu);
        system.charge(task, cost);
        if free {
            return self.done(task);
        }
        self.begin_call(system, cpu, task, wait)
    }

    /// The running task goes on with unlocking a mutex; `wake` is the work of a futex call up to
    /// the wake-up.
    ///
    /// # Panics
    /// When it does not hold it.
    pub(super) fn unlock<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: TaskId,
        first: u32,
        wake: Dist,
    ) -> Progress {
        let t = &self.threads[task];
        let (mutex, phase) = (MutexId(first + t.drawn), t.phase);
        let m = &mut self.mutexes[mutex];
        if phase == Phase::Fresh {
            assert_eq!(m.owner.take(), Some(task), "mutex {mutex} is another's");
            let before = std::mem::take(&mut m.word);
            let cost = m.line.write(system, cpu);
            system.charge(task, cost);
            if before == Word::Contended {
                return self.begin_call(system, cpu, task, wake);
            }
        } else if let Some(waiter) = m.waiting.pop_front() {
            let cost = system.wake(waiter, cpu, task, false);
            system.charge_kernel(cpu, task, cost);
        }
        self.done(task)
    }

    /// The running task works in the kernel before its operation goes on.
    pub(super) fn begin_call<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: TaskId,
        work: Dist,
    ) -> Progress {
        self.threads[task].phase = Phase::InCall;
        let work_ns = self.sample(task, work);
        system.set_kernel_work(cpu, task, work_ns);
        Progress::Works
    }
}

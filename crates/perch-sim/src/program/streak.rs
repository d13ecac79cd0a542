// SPDX-License-Identifier: GPL-2.0-or-later
//! Many rounds of lock, work, yield, unlock, work as one event.
//!
//! While a task is alone on its CPU and nobody else comes for its mutex, a yield does nothing and
//! a mutex is only marked and unmarked: the scheduler may run the rounds as one segment (a streak).
//! It ends the streak where it must; the task's program, and the mutex, are brought to where they
//! would be had every step been an event as soon as anybody looks at them.

use perch_engine::Dist;
use perch_sched::Rounds;
use perch_workload::Op;

use crate::id::{CpuId, Id, MutexId, TaskId};

use super::mutex::Word;
use super::{Interpreter, System};

/// A streak whose end its task has not seen.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    task: TaskId,
    mutex: MutexId,
    /// The program's first operation after the lock.
    pc: u32,
    /// Rounds that the task had done when the streak began.
    rounds: u64,
}

/// More rounds than this begin another streak: times stay within 64 bits, whatever the work of a
/// round and the CPU's speed, and the events of streaks that ended early are soon gone.
const MOST_ROUNDS: u64 = 1 << 13;

impl Interpreter {
    /// The running task has just locked a mutex: if it goes on with rounds that nobody disturbs,
    /// begins a streak. Returns whether it did.
    pub(super) fn begin_streak<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: TaskId,
    ) -> bool {
        let alone = system.is_alone(cpu);
        let t = &self.threads[task];
        let pc = t.pc as usize;
        let &[
            Op::Lock { first, .. },
            Op::Run(Dist::Const(held_ns)),
            Op::Yield,
            Op::Unlock { first: same, .. },
            Op::Run(Dist::Const(free_ns)),
            Op::Repeat { to, times },
        ] = t.program.get(pc - 1..pc + 5).unwrap_or_default()
        else {
            return false;
        };
        let (mutex, done) = (MutexId(first + t.drawn), t.rounds);
        let rounds = (times - done).min(MOST_ROUNDS);
        let calm =
            system.is_plain(task) && self.mutexes[mutex].is_calm() && alone && !self.stepwise;
        if !calm || first != same || to as usize != pc - 1 || held_ns == 0 || rounds < 2 {
            return false;
        }
        self.see_streak(system, cpu);
        let of = Rounds {
            held_ns,
            free_ns,
            rounds,
        };
        system.begin_streak(cpu, task, &of);
        self.streaks[cpu] = Some(Pending {
            task,
            mutex,
            pc: pc as u32,
            rounds: done,
        });
        self.mutexes[mutex].streak = Some(CpuId::of(cpu));
        self.threads[task].streaks_on = Some(CpuId::of(cpu));
        true
    }

    /// A task that was in a streak goes on.
    #[inline(never)]
    pub(super) fn see_streak_of<S: System>(&mut self, system: &mut S, task: TaskId) {
        if let Some(cpu) = self.threads[task].streaks_on {
            self.see_streak(system, cpu.index());
        }
    }

    /// If the streak that began on a CPU is over, its task and its mutex are brought to where it
    /// ended.
    pub(super) fn see_streak<S: System>(&mut self, system: &mut S, cpu: usize) {
        let (Some(pending), Some(ended)) = (self.streaks[cpu], system.take_ended(cpu)) else {
            return;
        };
        self.streaks[cpu] = None;
        let t = &mut self.threads[pending.task];
        t.streaks_on = None;
        t.rounds = pending.rounds + ended.round;
        t.pc = pending.pc + if ended.held { 1 } else { 4 };
        let m = &mut self.mutexes[pending.mutex];
        m.streak = None;
        if !ended.held {
            m.word = Word::Free;
            m.owner = None;
        }
    }

    /// Brings everything to where streaks that are over ended, for a look at it from outside.
    pub fn see_streaks<S: System>(&mut self, system: &mut S) {
        for cpu in 0..self.streaks.len() {
            self.see_streak(system, cpu);
        }
    }
}

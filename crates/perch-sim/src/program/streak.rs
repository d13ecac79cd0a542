// SPDX-License-Identifier: GPL-2.0-or-later
//! Many rounds of lock, work, yield, unlock, work as one event.
//!
//! While a task is alone on its CPU and no other task comes for its mutex, a yield does nothing and
//! a mutex is only marked and unmarked: the scheduler may run the rounds as one segment (a streak).
//! The scheduler ends the streak where it must. As soon as anything looks at the task's program or
//! at the mutex, this room brings both to where they would be if every step had been an event.

use perch_engine::Dist;
use perch_sched::Rounds;
use perch_workload::Op;

use super::mutex::Mutexes;
use super::system::System;
use super::thread::Threads;
use crate::id::{CpuId, Id, MutexId, TaskId};

/// A streak whose end its task has not seen.
#[derive(Clone, Copy, Debug)]
struct Pending {
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

/// The streaks of a run.
#[derive(Debug)]
pub struct Streaks {
    /// By CPU: the streak that began there, until its task has seen its end.
    pending: Vec<Option<Pending>>,
    /// Every step is an event: no streaks.
    stepwise: bool,
}

impl Streaks {
    /// No streak yet, on a machine of this many CPUs; 0 for a workload without mutexes.
    pub fn new(nr_cpus: usize) -> Streaks {
        Streaks { pending: vec![None; nr_cpus], stepwise: false }
    }

    /// Makes every step an event from now on, also where many could be one.
    pub fn step_by_step(&mut self) {
        self.stepwise = true;
    }

    /// The running task has just locked a mutex: if it goes on with rounds that no other task
    /// disturbs, begins a streak. Returns whether it did.
    pub fn begin<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: TaskId,
        threads: &mut Threads,
        mutexes: &mut Mutexes,
    ) -> bool {
        let alone = system.is_alone(cpu);
        let t = &threads[task];
        let &[
            Op::Lock { first, .. },
            Op::Run(Dist::Const(held_ns)),
            Op::Yield,
            Op::Unlock { first: same, .. },
            Op::Run(Dist::Const(free_ns)),
            Op::Repeat { to, times },
        ] = t.ops_from_last(6)
        else {
            return false;
        };
        let (pc, done) = (t.pc, t.rounds);
        let mutex = MutexId(first + t.drawn);
        let rounds = (times - done).min(MOST_ROUNDS);
        let calm = system.is_plain(task) && mutexes.is_calm(mutex) && alone && !self.stepwise;
        if !calm || first != same || to != pc - 1 || held_ns == 0 || rounds < 2 {
            return false;
        }
        self.see(system, cpu, threads, mutexes);
        let of = Rounds { held_ns, free_ns, rounds };
        system.begin_streak(cpu, task, &of);
        self.pending[cpu] = Some(Pending { task, mutex, pc, rounds: done });
        mutexes.begin_streak(mutex, CpuId::of(cpu));
        threads[task].streaks_on = Some(CpuId::of(cpu));
        true
    }

    /// A task comes for a mutex that a streak takes and frees time and again: ends the streak.
    #[inline]
    pub fn end_for<S: System>(
        &mut self,
        system: &mut S,
        mutex: MutexId,
        threads: &mut Threads,
        mutexes: &mut Mutexes,
    ) {
        if let Some(cpu) = mutexes.streak(mutex) {
            system.end_streak(cpu.index());
            self.see(system, cpu.index(), threads, mutexes);
        }
    }

    /// If the streak that began on a CPU is over, brings its task and its mutex to where it ended.
    #[inline(never)]
    pub fn see<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        threads: &mut Threads,
        mutexes: &mut Mutexes,
    ) {
        let (Some(pending), Some(ended)) = (self.pending[cpu], system.take_ended(cpu)) else {
            return;
        };
        self.pending[cpu] = None;
        let t = &mut threads[pending.task];
        t.streaks_on = None;
        t.rounds = pending.rounds + ended.round;
        t.pc = pending.pc + if ended.held { 1 } else { 4 };
        mutexes.end_streak(pending.mutex, ended.held);
    }

    /// Brings everything to where streaks that are over ended, for a look at it from outside.
    pub fn see_all<S: System>(
        &mut self,
        system: &mut S,
        threads: &mut Threads,
        mutexes: &mut Mutexes,
    ) {
        for cpu in 0..self.pending.len() {
            self.see(system, cpu, threads, mutexes);
        }
    }
}

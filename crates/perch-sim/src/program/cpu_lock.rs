// SPDX-License-Identifier: GPL-2.0-or-later
//! Locks that belong to CPUs, for which tasks spin, as schbench's workers do.
//!
//! The task that runs on a CPU takes the CPU's lock by trying over and over. The owner keeps the
//! lock while it is preempted, and even when the kernel moves it, so that others spin meanwhile.

use super::shared_line::SharedLine;
use super::system::System;
use super::thread::{Progress, Thread};
use crate::id::{CpuId, Id, IdVec, TaskId};

/// How long a spinning task goes on before it looks by itself; a task that unlocks tells it at once.
const SPIN_NS: u64 = 1_000_000_000;

/// A lock that belongs to a CPU.
#[derive(Debug, Default)]
struct CpuLock {
    owner: Option<TaskId>,
    spinning: Vec<TaskId>,
    line: SharedLine,
}

/// A task that takes such locks.
#[derive(Debug, Default)]
struct Locker {
    holds: Option<CpuId>,
    spins: Option<CpuId>,
}

/// The locks of all CPUs, and the tasks that take them, each made when it is first used.
#[derive(Debug, Default)]
pub struct CpuLocks {
    locks: IdVec<CpuId, CpuLock>,
    lockers: IdVec<TaskId, Locker>,
}

impl CpuLocks {
    /// The running task goes on with taking the lock of the CPU that it was on when it began.
    pub fn lock<S: System>(&mut self, system: &mut S, cpu: usize, thread: &mut Thread) -> Progress {
        let (task, here) = (thread.task, CpuId::of(cpu));
        let locker = self.lockers.or_default(task);
        loop {
            let on = locker.spins.unwrap_or(here);
            let lock = self.locks.or_default(on);
            if lock.owner.is_some() {
                if !lock.spinning.contains(&task) {
                    lock.spinning.push(task);
                }
                locker.spins = Some(on);
                system.set_work(task, SPIN_NS);
                return Progress::Works;
            }
            lock.spinning.retain(|&other| other != task);
            let cost = lock.line.write(system, cpu);
            system.charge(task, cost);
            locker.spins = None;
            // The kernel may have moved it while it spun: then it needs another lock now.
            if on == here {
                lock.owner = Some(task);
                locker.holds = Some(on);
                return thread.done();
            }
        }
    }

    /// The running task unlocks the CPU lock that it holds: tasks that spin for it look again.
    ///
    /// # Panics
    /// When it holds none.
    pub fn unlock<S: System>(&mut self, system: &mut S, cpu: usize, thread: &mut Thread) {
        let task = thread.task;
        let on = self.lockers.or_default(task).holds.take();
        let on = on.expect("a lock is unlocked by its owner");
        let lock = self.locks.or_default(on);
        assert_eq!(lock.owner.take(), Some(task), "CPU lock {on} is another's");
        let spinning = std::mem::take(&mut lock.spinning);
        let cost = lock.line.write(system, cpu);
        system.charge(task, cost);
        for &other in &spinning {
            system.look_again(other);
        }
        thread.done();
    }
}

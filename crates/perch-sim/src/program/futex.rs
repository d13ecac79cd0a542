// SPDX-License-Identifier: GPL-2.0-or-later
//! Threads of one process that wait for one another on futexes of their own, and spin for locks
//! that belong to CPUs: what schbench does.
//!
//! Every task has one word, blocked or running, and a list of those that posted themselves to it.
//! Who posts a blocked word sets it running and makes a futex call; who waits sleeps only if the
//! word is still blocked when the kernel looks. The list is a stack: the last to come is the first
//! to be woken. A lock that belongs to a CPU is taken by whoever runs there, by trying over and
//! over; its owner keeps it when it is preempted, or even moved, so that others spin meanwhile.

use perch_engine::Dist;
use perch_workload::FutexCall;

use crate::id::{CpuId, Id, IdVec, TaskId};

use super::mutex::LastWriter;
use super::{Interpreter, Phase, Progress, System};

/// How long a spinning task goes on before it looks by itself; who unlocks tells it at once.
const SPIN_NS: u64 = 1_000_000_000;
/// How finely a task looks at the clock that it spins by: less than anything measured there.
const CLOCK_NS: u64 = 250_000;

/// What a task shares with those that post to it or that it posts.
#[derive(Debug, Default)]
pub struct Seat {
    /// The futex's word: somebody posted it and nobody waited since.
    posted: bool,
    /// Asleep in a futex call.
    asleep: bool,
    /// Who posted themselves here, in that order.
    list: Vec<TaskId>,
    /// Of those, who is being woken, the next one last.
    waking: Vec<TaskId>,
    /// When they that woke it began to.
    stamp_ns: u64,
    /// Who wrote all this last.
    line: LastWriter,
    /// The lock that it holds, and the one that it spins for, by CPU.
    holds: Option<CpuId>,
    spins: Option<CpuId>,
    /// Until when it spins by the clock.
    until_ns: Option<u64>,
    /// Where its own working set is: the CPU, and how much that CPU's caches had taken up then.
    data: Option<(CpuId, u64)>,
}

/// A lock that belongs to a CPU.
#[derive(Debug, Default)]
pub struct CpuLock {
    owner: Option<TaskId>,
    spinning: Vec<TaskId>,
    line: LastWriter,
}

/// All of these, made when the first operation asks for one.
#[derive(Debug, Default)]
pub struct Futexes {
    seats: IdVec<TaskId, Seat>,
    locks: Vec<CpuLock>,
}

impl Futexes {
    /// Who sleeps until somebody posts to it: for the auditor.
    pub fn sleepers(&self) -> impl Iterator<Item = TaskId> {
        let asleep = self.seats.named().filter(|(_, seat)| seat.asleep);
        asleep.map(|(task, _)| task)
    }
}

impl Interpreter {
    fn seat(&mut self, task: TaskId) -> &mut Seat {
        if self.futexes.seats.is_empty() {
            self.futexes.seats = self.threads.iter().map(|_| Seat::default()).collect();
        }
        &mut self.futexes.seats[task]
    }

    /// The running task writes another's word, list and what the kernel knows of it, or its own:
    /// so many lines.
    fn touch_seat<S: System>(
        &mut self,
        system: &mut S,
        seat: TaskId,
        cpu: usize,
        task: TaskId,
        lines: u32,
    ) {
        let cost = self.seat(seat).line.write(system, cpu);
        system.charge_kernel(cpu, task, cost * u64::from(lines));
    }

    /// The kernel's part of a post: wakes who sleeps on the word.
    fn wake_sleeper<S: System>(&mut self, system: &mut S, seat: TaskId, cpu: usize, task: TaskId) {
        if std::mem::take(&mut self.seat(seat).asleep) {
            let cost = system.wake(seat, cpu, task, false);
            system.charge_kernel(cpu, task, cost);
        }
    }

    /// The running task goes on with posting itself to task `to`; `call` is the futex call, if
    /// there is one.
    pub(super) fn post<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: TaskId,
        to: TaskId,
        call: FutexCall,
    ) -> Progress {
        if self.threads[task].phase == Phase::Fresh {
            self.touch_seat(system, task, cpu, task, 1);
            self.seat(task).posted = false;
            let owner = self.seat(to);
            owner.list.push(task);
            if !std::mem::replace(&mut owner.posted, true) {
                self.touch_seat(system, to, cpu, task, call.lines);
                return self.begin_call(system, cpu, task, call.work);
            }
            self.touch_seat(system, to, cpu, task, 1);
        } else {
            self.wake_sleeper(system, to, cpu, task);
        }
        self.done(task)
    }

    /// The running task goes on with waiting to be posted; `call` is the futex call, if there
    /// is one.
    pub(super) fn wait_posted<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: TaskId,
        call: FutexCall,
    ) -> Progress {
        let phase = self.threads[task].phase;
        let seat = self.seat(task);
        if std::mem::take(&mut seat.posted) {
            let slept = phase == Phase::Woken;
            self.touch_seat(system, task, cpu, task, if slept { call.lines } else { 1 });
            return self.done(task);
        }
        if phase != Phase::InCall {
            return self.begin_call(system, cpu, task, call.work);
        }
        seat.asleep = true;
        self.threads[task].phase = Phase::Woken;
        Progress::Sleeps
    }

    /// The running task goes on with posting all who posted themselves to it, the last one first,
    /// with one timestamp from before the first; its own word is blocked first.
    pub(super) fn wake_all<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: TaskId,
        call: FutexCall,
    ) -> Progress {
        if self.threads[task].phase == Phase::Fresh {
            self.touch_seat(system, task, cpu, task, 1);
            let now = system.now_ns();
            let seat = self.seat(task);
            seat.posted = false;
            seat.waking = std::mem::take(&mut seat.list);
            for i in 0..seat.waking.len() {
                let waiter = self.seat(task).waking[i];
                self.seat(waiter).stamp_ns = now;
            }
        } else if let Some(waiter) = self.seat(task).waking.pop() {
            self.wake_sleeper(system, waiter, cpu, task);
        }
        match self.seat(task).waking.last() {
            Some(&waiter) => {
                self.touch_seat(system, waiter, cpu, task, call.lines);
                self.seat(waiter).posted = true;
                self.begin_call(system, cpu, task, call.work)
            }
            None => self.done(task),
        }
    }

    /// The running task notes how long ago those that posted it began to.
    pub(super) fn note_latency<S: System>(&mut self, system: &mut S, task: TaskId) {
        let stamp_ns = self.seat(task).stamp_ns;
        let now = system.now_ns();
        if let Some(requests) = &mut self.requests {
            requests.woken(now - stamp_ns);
        }
        self.threads[task].pc += 1;
    }

    /// The running task has done a unit of work, one of its second's requests.
    pub(super) fn note_request<S: System>(&mut self, system: &mut S, task: TaskId) {
        self.threads[task].pc += 1;
        self.counted += 1;
        if let Some(requests) = &mut self.requests {
            requests.done(system.now_ns());
        }
    }

    /// The running task goes on with taking the lock of the CPU that it was on when it began.
    pub(super) fn lock_cpu<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: TaskId,
    ) -> Progress {
        if self.futexes.locks.is_empty() {
            let n = self.nr_cpus;
            self.futexes.locks.resize_with(n, CpuLock::default);
        }
        let on = self.seat(task).spins.map_or(cpu, CpuId::index);
        let lock = &mut self.futexes.locks[on];
        if lock.owner.is_some() {
            if !lock.spinning.contains(&task) {
                lock.spinning.push(task);
            }
            self.seat(task).spins = Some(CpuId::of(on));
            system.set_work(task, SPIN_NS);
            return Progress::Works;
        }
        lock.spinning.retain(|&other| other != task);
        let cost = lock.line.write(system, cpu);
        system.charge(task, cost);
        self.seat(task).spins = None;
        if on != cpu {
            // It was moved while it spun: this lock is not the one that it needs now.
            return self.lock_cpu(system, cpu, task);
        }
        self.futexes.locks[on].owner = Some(task);
        self.seat(task).holds = Some(CpuId::of(on));
        self.done(task)
    }

    /// The running task unlocks the CPU lock that it holds: who spins for it looks again.
    ///
    /// # Panics
    /// When it holds none.
    pub(super) fn unlock_cpu<S: System>(&mut self, system: &mut S, cpu: usize, task: TaskId) {
        let on = self.seat(task).holds.take();
        let on = on.expect("a lock is unlocked by its owner").index();
        let lock = &mut self.futexes.locks[on];
        assert_eq!(lock.owner.take(), Some(task), "CPU lock {on} is another's");
        let spinning = std::mem::take(&mut lock.spinning);
        let cost = lock.line.write(system, cpu);
        system.charge(task, cost);
        for &other in &spinning {
            system.look_again(other);
        }
        self.done(task);
    }

    /// The running task goes on with spinning until so much time has passed, wherever it went:
    /// it may have been off the CPU all the while.
    pub(super) fn spin<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: TaskId,
        time: Dist,
    ) -> Progress {
        let now = system.now_ns();
        let t = &mut self.threads[task];
        let until_ns = match t.phase {
            Phase::Fresh => {
                t.phase = Phase::InCall;
                let until_ns = now + time.sample(&mut t.random);
                self.seat(task).until_ns = Some(until_ns);
                until_ns
            }
            _ => self.seat(task).until_ns.unwrap_or(now),
        };
        if now >= until_ns {
            return self.done(task);
        }
        // In short stretches: what happens on the sibling changes the CPU's speed, not the clock.
        let wall_ns = (until_ns - now).min(CLOCK_NS);
        let work_ns = wall_ns * u64::from(system.speed_1024(cpu)) / 1024;
        system.set_work(task, work_ns.max(1));
        Progress::Works
    }

    /// The running task goes over `lines` of its own data: it pays for those that it does not
    /// find in the CPU's caches.
    pub(super) fn touch_data<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: TaskId,
        lines: u32,
    ) {
        let fill = system.fill(cpu);
        let before = self.seat(task).data;
        let warm = before.map(|(at, _)| at.index());
        let others = before.map_or(0, |(_, then)| fill - then.min(fill));
        let cost = system.costs().refill_ns(lines, warm, cpu, others);
        system.add_fill(cpu, lines);
        let fill = system.fill(cpu);
        self.seat(task).data = Some((CpuId::of(cpu), fill));
        system.charge(task, cost);
        self.done(task);
    }
}

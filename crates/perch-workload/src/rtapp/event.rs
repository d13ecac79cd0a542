// SPDX-License-Identifier: GPL-2.0-or-later
//! rt-app's events as operations, and the objects that tasks share by name: mutexes, condition
//! variables, barriers, timers.
//!
//! A task that locks a mutex twice, unlocks one that it does not hold, or keeps one at its end
//! stops rt-app, or makes it do what nobody can foresee. This file refuses such a task, because
//! here the line is known.

use std::collections::BTreeMap;

use perch_engine::Dist;

use super::error::{KeyError, RtAppError};
use super::json::{Member, Value};
use super::task::{Made, instances};
use super::value::{Global, members, number, text, wrong};
use crate::Op;

/// The longest time of an event, microseconds: an hour.
pub const LONGEST_US: i64 = 3_600_000_000;

/// The most times that rt-app forks a task; the next one ends it with an error.
const MOST_FORKS: usize = 1024;

/// Events of rt-app 1.0, and events that only later versions know.
const EVENTS: [&str; 16] = [
    "lock", "unlock", "wait", "signal", "broad", "sync", "sleep", "runtime", "run", "timer",
    "suspend", "resume", "mem", "iorun", "yield", "barrier",
];
pub const LATER: [&str; 4] = ["fork", "memrun", "sem_post", "sem_wait"];

/// The event that a key means. rt-app takes a key for an event if the key begins with the event's
/// name, so that keys can be made unique. Of two names the longer one counts.
pub fn event_of(key: &str) -> Option<&'static str> {
    let names = EVENTS.iter().chain(&LATER);
    let of = names.filter(|name| key.starts_with(**name));
    of.max_by_key(|name| name.len()).copied()
}

/// The objects that all tasks share, by name.
#[derive(Default)]
pub struct Shared {
    mutexes: BTreeMap<String, u32>,
    conditions: BTreeMap<String, u32>,
    /// Number of times that tasks come to each barrier, by its name.
    users: BTreeMap<String, u32>,
    /// Timers by name; a timer that only one thread uses has the thread's number before its name.
    timers: BTreeMap<(Option<usize>, String), u32>,
    semaphores: BTreeMap<String, u32>,
}

/// The threads that threads fork.
#[derive(Default)]
pub struct Forks<'a> {
    /// The file's tasks.
    pub tasks: &'a [Member],
    /// Number of threads that rt-app starts: the number of the first forked one.
    pub started: usize,
    /// The task of each forked thread, and the forker's state, which its child begins with.
    pub forked: Vec<(&'a Member, Made)>,
}

fn number_of<K: Ord>(names: &mut BTreeMap<K, u32>, name: K) -> u32 {
    let next = names.len() as u32;
    *names.entry(name).or_insert(next)
}

impl Shared {
    /// Counts the threads that come to each barrier: every instance of a task comes each time that
    /// the task names the barrier.
    ///
    /// # Errors
    /// A task that is not an object, and the like.
    pub fn count_users(&mut self, tasks: &[Member]) -> Result<(), RtAppError> {
        for task in tasks {
            let instances = instances(task)? as u32;
            let task_members = members(task)?;
            let mut events: Vec<&Member> = task_members.iter().collect();
            for phases in task_members.iter().filter(|m| m.key == "phases") {
                for phase in members(phases)? {
                    events.extend(members(phase)?);
                }
            }
            for event in events {
                if event_of(&event.key) == Some("barrier") {
                    let users = self.users.entry(text(event)?.to_string()).or_default();
                    *users = users.saturating_add(instances);
                }
            }
        }
        Ok(())
    }

    /// Number of channels: each semaphore is one.
    pub fn channels(&self) -> usize {
        self.semaphores.len()
    }

    /// Number of mutexes.
    pub fn mutexes(&self) -> usize {
        self.mutexes.len()
    }
}

/// A thread's program in the making.
pub struct Events<'m, 'a> {
    pub global: &'a Global,
    pub shared: &'m mut Shared,
    pub forks: &'m mut Forks<'a>,
    /// Number of the thread, and the name of its task.
    pub thread: usize,
    pub task: &'a str,
    /// Mutexes that the thread holds at this point, each with the key that locked it.
    pub held: BTreeMap<u32, String>,
    /// The CPUs and the group of the thread at this point.
    pub now: Made,
}

impl Events<'_, '_> {
    /// Appends the operations of events. Returns whether the events take time.
    pub fn append(&mut self, events: &[&Member], ops: &mut Vec<Op>) -> Result<bool, RtAppError> {
        let mut takes_time = false;
        for member in events {
            takes_time |= match event_of(&member.key) {
                Some(event @ ("run" | "runtime" | "sleep" | "mem" | "iorun" | "timer")) => {
                    self.timed(event, member, ops)? > 0
                }
                Some("yield") => {
                    ops.push(Op::Yield);
                    false
                }
                Some("barrier") => self.barrier(member, ops)?,
                Some("fork") => self.fork(member, ops)?,
                Some(event @ ("sem_post" | "sem_wait")) => self.semaphore(event, member, ops)?,
                Some("memrun") => return wrong(member, KeyError::MemRun),
                Some(event) => self.meet(event, member, ops)?,
                None => return wrong(member, KeyError::UnknownHere),
            };
        }
        Ok(takes_time)
    }

    /// Appends the fork of another thread, which takes no time.
    fn fork(&mut self, member: &Member, ops: &mut Vec<Op>) -> Result<bool, RtAppError> {
        let of = text(member)?;
        let Some(task) = self.forks.tasks.iter().find(|task| task.key == of) else {
            return wrong(member, KeyError::NoSuchTask);
        };
        let forked = &mut self.forks.forked;
        if forked.iter().filter(|(known, _)| known.key == of).count() >= MOST_FORKS {
            return wrong(member, KeyError::TooManyForks);
        }
        ops.push(Op::Fork((self.forks.started + forked.len()) as u32));
        let now = Made { delay_ns: None, ..self.now.clone() };
        forked.push((task, now));
        Ok(false)
    }

    /// Appends an operation on a semaphore. Returns whether the thread may wait there.
    fn semaphore(
        &mut self,
        event: &str,
        member: &Member,
        ops: &mut Vec<Op>,
    ) -> Result<bool, RtAppError> {
        let channel = number_of(&mut self.shared.semaphores, name(member, "")?);
        let waits = event == "sem_wait";
        ops.push(if waits {
            Op::Receive { channel }
        } else {
            Op::Send { channel, lines: self.global.costs.wake.lines, sync: false }
        });
        Ok(waits)
    }

    /// Appends an event that takes a time of its own. Returns that time, nanoseconds.
    fn timed(
        &mut self,
        event: &str,
        member: &Member,
        ops: &mut Vec<Op>,
    ) -> Result<u64, RtAppError> {
        let us = || number(member, 0, LONGEST_US).map(|us| us as u64 * 1000);
        let bytes = || number(member, 0, i64::from(i32::MAX)).map(|bytes| bytes as u64);
        let costs = &self.global.costs;
        let (op, ns): (fn(Dist) -> Op, u64) = match event {
            "run" => (Op::Run, us()? * u64::from(self.global.capacity) / 1024),
            "runtime" => (Op::Spin, us()?),
            "sleep" => (Op::Sleep, us()?),
            "mem" => (Op::Run, bytes()? * 1000 / costs.mem_rate),
            "iorun" => {
                let writes = bytes()?.div_ceil(self.global.buffer);
                (Op::Kernel, writes * costs.write_ns)
            }
            _ => return self.timer(member, ops),
        };
        ops.push(op(Dist::Const(ns)));
        Ok(ns)
    }

    /// Appends an event in which tasks meet at mutexes and condition variables. Returns whether
    /// the task may wait there.
    fn meet(
        &mut self,
        event: &str,
        member: &Member,
        ops: &mut Vec<Op>,
    ) -> Result<bool, RtAppError> {
        match event {
            "lock" => self.lock(member, text(member)?, ops)?,
            "unlock" => self.unlock(member, text(member)?, ops)?,
            "signal" => {
                let condition = number_of(&mut self.shared.conditions, name(member, "")?);
                let call = self.global.costs.wake;
                ops.push(Op::Signal { condition, call });
            }
            "broad" => self.broadcast(name(member, "")?, ops),
            "resume" => {
                let of = text(member)?;
                self.lock(member, of, ops)?;
                self.broadcast(of.to_string(), ops);
                self.unlock(member, of, ops)?;
            }
            "suspend" => {
                let of = match &member.value {
                    // workgen writes it so.
                    Value::Null => self.task,
                    _ => text(member)?,
                };
                self.lock(member, of, ops)?;
                let condition = number_of(&mut self.shared.conditions, of.to_string());
                let mutex = number_of(&mut self.shared.mutexes, of.to_string());
                self.wait(condition, mutex, ops);
                self.unlock(member, of, ops)?;
                return Ok(true);
            }
            "wait" | "sync" => {
                let (condition, mutex) = self.condition(member)?;
                if event == "sync" {
                    let call = self.global.costs.wake;
                    ops.push(Op::Signal { condition, call });
                }
                self.wait(condition, mutex, ops);
                return Ok(true);
            }
            event => unreachable!("{event} is not an event where tasks meet"),
        }
        Ok(false)
    }

    fn lock(&mut self, member: &Member, of: &str, ops: &mut Vec<Op>) -> Result<(), RtAppError> {
        let first = number_of(&mut self.shared.mutexes, of.to_string());
        if let Some(by) = self.held.insert(first, member.key.clone()) {
            let mutex = of.to_string();
            return wrong(member, KeyError::LocksTwice { mutex, by });
        }
        let wait = self.global.costs.wait.work;
        ops.push(Op::Lock { first, wait });
        Ok(())
    }

    fn unlock(&mut self, member: &Member, of: &str, ops: &mut Vec<Op>) -> Result<(), RtAppError> {
        let first = number_of(&mut self.shared.mutexes, of.to_string());
        if self.held.remove(&first).is_none() {
            let mutex = of.to_string();
            return wrong(member, KeyError::NotLocked { mutex });
        }
        let wake = self.global.costs.wake.work;
        ops.push(Op::Unlock { first, wake });
        Ok(())
    }

    fn broadcast(&mut self, of: String, ops: &mut Vec<Op>) {
        let condition = number_of(&mut self.shared.conditions, of);
        let call = self.global.costs.wake;
        ops.push(Op::Broadcast { condition, call });
    }

    /// The condition variable and the mutex of a wait. The thread has to hold the mutex.
    fn condition(&mut self, member: &Member) -> Result<(u32, u32), RtAppError> {
        let (mut of, mut mutex) = (None, None);
        for key in members(member)? {
            match key.key.as_str() {
                "ref" => of = Some(name(key, "")?),
                "mutex" => mutex = Some(text(key)?),
                _ => return wrong(key, KeyError::WaitKey),
            }
        }
        let (Some(of), Some(mutex)) = (of, mutex) else {
            return wrong(member, KeyError::WaitKeys);
        };
        let first = number_of(&mut self.shared.mutexes, mutex.to_string());
        if !self.held.contains_key(&first) {
            let mutex = mutex.to_string();
            return wrong(member, KeyError::NotLocked { mutex });
        }
        Ok((number_of(&mut self.shared.conditions, of), first))
    }

    fn wait(&mut self, condition: u32, first: u32, ops: &mut Vec<Op>) {
        let costs = &self.global.costs;
        let (wake, wait) = (costs.wake.work, costs.wait.work);
        ops.extend([
            Op::Enlist { condition },
            Op::Unlock { first, wake },
            Op::Await { condition, call: costs.wait },
            Op::Lock { first, wait },
        ]);
    }

    /// Appends a barrier as rt-app makes it, of a mutex and a condition variable that no other name
    /// reaches. The last thread to come lets the others go, and does not wait until they have left.
    /// Returns whether a thread may have to wait there.
    fn barrier(&mut self, member: &Member, ops: &mut Vec<Op>) -> Result<bool, RtAppError> {
        if self.now.delay_ns.is_none() {
            return wrong(member, KeyError::ForkedBarrier);
        }
        let users = self.shared.users.get(text(member)?).copied().unwrap_or(1);
        let of = name(member, "barrier ")?;
        let first = number_of(&mut self.shared.mutexes, of.clone());
        let condition = number_of(&mut self.shared.conditions, of);
        let costs = &self.global.costs;
        let (wake, wait) = (costs.wake.work, costs.wait.work);
        let begin = ops.len() as u32;
        ops.push(Op::Lock { first, wait });
        ops.push(Op::Gate { condition, users, last: begin + 9 });
        self.wait(condition, first, ops);
        ops.extend([
            Op::Ungate { condition },
            Op::Unlock { first, wake },
            Op::Jump(begin + 11),
            Op::Broadcast { condition, call: self.global.costs.wake },
            Op::Unlock { first, wake },
        ]);
        debug_assert_eq!(ops.len() as u32, begin + 11);
        Ok(users > 1)
    }

    fn timer(&mut self, member: &Member, ops: &mut Vec<Op>) -> Result<u64, RtAppError> {
        let (mut of, mut period, mut absolute) = (None, None, false);
        for key in members(member)? {
            match key.key.as_str() {
                "ref" => of = Some(name(key, "")?),
                "period" => period = Some(number(key, 0, LONGEST_US)? as u64 * 1000),
                "mode" => {
                    absolute = match text(key)? {
                        "absolute" => true,
                        "relative" => false,
                        _ => return wrong(key, KeyError::TimerMode),
                    }
                }
                _ => return wrong(key, KeyError::TimerKey),
            }
        }
        let (Some(of), Some(period)) = (of, period) else {
            return wrong(member, KeyError::TimerKeys);
        };
        let own = of.starts_with("unique").then_some(self.thread);
        let timer = number_of(&mut self.shared.timers, (own, of));
        ops.push(Op::Timer { timer, period, absolute });
        Ok(period)
    }
}

/// A key for a name; `kind` sets equal names of different kinds apart.
fn name(member: &Member, kind: &str) -> Result<String, RtAppError> {
    Ok(format!("{kind}{}", text(member)?))
}

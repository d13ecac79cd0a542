// SPDX-License-Identifier: GPL-2.0-or-later
//! What must hold of programs and what they share between any two moments, for tests.

use perch_sched::{Life, hold};
use perch_workload::Op;

use crate::id::{ChannelId, Id, IdVec, MutexId, TaskId};

use super::mutex::Word;
use super::{Interpreter, Phase};

impl Interpreter {
    /// Messages, mutexes and condition variables are in order. `life` tells where a task is in its
    /// life.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check(&self, life: &dyn Fn(TaskId) -> Life) -> Result<(), String> {
        self.check_channels(life)?;
        self.check_mutexes(life)?;
        self.check_conditions()
    }

    /// Adds to each task's reasons to wake the messages, room, mutexes, futexes and condition
    /// variables that it sleeps on.
    pub fn add_reasons(&self, reasons: &mut [u32]) {
        let channels = self.channels.iter();
        let messages = channels.flat_map(|c| c.waiting.iter().chain(&c.blocked));
        let mutexes = self.mutexes.iter().flat_map(|m| &m.waiting);
        let conditions = self.conditions.iter().flat_map(|c| c.sleepers());
        let all = messages.chain(mutexes).chain(conditions).copied();
        for task in all.chain(self.futexes.sleepers()) {
            reasons[task.index()] += 1;
        }
    }

    /// Who waits for a message is asleep, and no message lies there that nobody was woken for;
    /// what was sent was taken or lies there; who waits for room will be woken.
    fn check_channels(&self, life: &dyn Fn(TaskId) -> Life) -> Result<(), String> {
        let channels = || self.channels.iter();
        let mut woken: IdVec<ChannelId, usize> = channels().map(|_| 0).collect();
        let mut waking: IdVec<ChannelId, bool> = channels().map(|_| false).collect();
        let up = |l: Life| matches!(l, Life::Waking | Life::Queued | Life::Running);
        for (_, t) in self.threads.named().filter(|&(id, _)| up(life(id))) {
            if let Op::Receive { channel } = *t.op() {
                woken[ChannelId(channel)] += 1;
                waking[ChannelId(channel)] |= t.phase == Phase::InCall;
            }
        }
        for (number, channel) in self.channels.named() {
            let left = channel.messages.len();
            hold!(
                channel.waiting.is_empty() || left <= woken[number],
                "channel {number}: {left} messages, {} woken for them, {:?} asleep",
                woken[number],
                channel.waiting
            );
            hold!(
                channel.sent - channel.taken == left as u64,
                "channel {number}: {left} of {} messages left, {} taken",
                channel.sent,
                channel.taken
            );
            hold!(
                channel.blocked.is_empty() || left > channel.low as usize || waking[number],
                "channel {number}: {left} messages, {:?} wait for room, nobody wakes them",
                channel.blocked
            );
        }
        Ok(())
    }

    /// A mutex is free exactly when nobody holds it, and who sleeps on one will be woken: its
    /// owner sees that it is waited for, or somebody is about to wake, or was woken and will mark
    /// it again.
    fn check_mutexes(&self, life: &dyn Fn(TaskId) -> Life) -> Result<(), String> {
        let mutexes = self.mutexes.iter();
        let mut awake: IdVec<MutexId, bool> = mutexes.map(|_| false).collect();
        let up = |l: Life| matches!(l, Life::Waking | Life::Queued | Life::Running);
        for (_, t) in self.threads.named().filter(|&(id, _)| up(life(id))) {
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

    /// Who sleeps on a condition variable was not signalled, or is about to be woken.
    fn check_conditions(&self) -> Result<(), String> {
        for (number, c) in self.conditions.named() {
            let lost = c.sleepers().iter().find(|&&task| !c.is_in_order(task));
            hold!(
                lost.is_none(),
                "condition {number}: nobody will wake {lost:?}, which was signalled"
            );
        }
        Ok(())
    }
}

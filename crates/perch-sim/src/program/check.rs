// SPDX-License-Identifier: GPL-2.0-or-later
//! What must hold of programs and what they share between any two moments, for tests.

use perch_sched::{Life, hold};
use perch_workload::Op;

use super::mutex::Word;
use super::{Interpreter, Phase};

impl Interpreter {
    /// Messages, mutexes and condition variables are in order. `life` tells where a task is in its
    /// life.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check(&self, life: &dyn Fn(u32) -> Life) -> Result<(), String> {
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
            reasons[task as usize] += 1;
        }
    }

    /// Who waits for a message is asleep, and no message lies there that nobody was woken for;
    /// what was sent was taken or lies there; who waits for room will be woken.
    fn check_channels(&self, life: &dyn Fn(u32) -> Life) -> Result<(), String> {
        let mut woken = vec![0; self.channels.len()];
        let mut waking = vec![false; self.channels.len()];
        let up = |l: Life| matches!(l, Life::Waking | Life::Queued | Life::Running);
        for (_, t) in (0u32..).zip(&self.threads).filter(|&(id, _)| up(life(id))) {
            if let Op::Receive { channel } = t.program[t.pc as usize] {
                woken[channel as usize] += 1;
                waking[channel as usize] |= t.phase == Phase::Inside;
            }
        }
        for (number, channel) in self.channels.iter().enumerate() {
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
    fn check_mutexes(&self, life: &dyn Fn(u32) -> Life) -> Result<(), String> {
        let mut awake = vec![false; self.mutexes.len()];
        let up = |l: Life| matches!(l, Life::Waking | Life::Queued | Life::Running);
        for (_, t) in (0u32..).zip(&self.threads).filter(|&(id, _)| up(life(id))) {
            match (t.program[t.pc as usize], t.phase) {
                (Op::Unlock { first, .. }, Phase::Inside)
                | (Op::Lock { first, .. }, Phase::Inside | Phase::Woken) => {
                    awake[(first + t.drawn) as usize] = true;
                }
                _ => {}
            }
        }
        for (number, m) in self.mutexes.iter().enumerate() {
            hold!(
                m.owner.is_none() == (m.word == Word::Free),
                "mutex {number} is {:?}, held by {:?}",
                m.word,
                m.owner
            );
            let dead = |&t: &u32| matches!(life(t), Life::Unborn | Life::Dead);
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
        for (number, c) in self.conditions.iter().enumerate() {
            let lost = c.sleepers().iter().find(|&&task| !c.is_in_order(task));
            hold!(
                lost.is_none(),
                "condition {number}: nobody will wake {lost:?}, which was signalled"
            );
        }
        Ok(())
    }
}

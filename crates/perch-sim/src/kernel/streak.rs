// SPDX-License-Identifier: GPL-2.0-or-later
//! Many rounds of lock, work, yield, unlock as one event.
//!
//! While a task is alone on its CPU and nobody else comes for its mutex, a yield does nothing and
//! a mutex is only marked and unmarked: when each round's steps happen is known beforehand. Such a
//! streak ends when its last round's yield comes, or early when somebody wants the mutex, when a
//! task is queued on the CPU, or when the work is interrupted: the task is then put to where it
//! would be had every step been an event, and what follows is the same to the nanosecond. So that
//! this holds also when another event falls on the very nanosecond of a step, events of one moment
//! are handled by kind and CPU, not by arrival.

use super::mutex::Word;
use super::task::Place;
use super::{Kernel, kind};
use crate::engine::{Dist, Event};
use crate::workload::Op;

/// A streak under way: held, then free and held for each further round.
#[derive(Clone, Copy, Debug)]
pub struct Streak {
    mutex: u32,
    /// The program's first operation after the lock.
    pc: u32,
    /// Rounds that the task had done when it began, and those that it covers.
    rounds: [u64; 2],
    /// When it began.
    start_ns: u64,
    /// How long the mutex is held the first time, with what the task owed; then free, then held.
    first: Span,
    free: Span,
    held: Span,
}

/// A stretch of work: nanoseconds at full capacity, and on this CPU.
#[derive(Clone, Copy, Debug)]
struct Span {
    work_ns: u64,
    wall_ns: u64,
}

/// A stretch of a streak: which round's, whether the mutex is held, from when to when.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    round: u64,
    held: bool,
    from_ns: u64,
    span: Span,
}

impl Streak {
    /// When the mutex is freed in its round number `round` (from 0).
    fn freed_ns(&self, round: u64) -> u64 {
        self.start_ns + self.first.wall_ns + round * (self.free.wall_ns + self.held.wall_ns)
    }

    fn held(&self, round: u64) -> Stretch {
        let span = if round == 0 { self.first } else { self.held };
        Stretch {
            round,
            held: true,
            from_ns: self.freed_ns(round) - span.wall_ns,
            span,
        }
    }

    fn free(&self, round: u64) -> Stretch {
        Stretch {
            round,
            held: false,
            from_ns: self.freed_ns(round),
            span: self.free,
        }
    }

    fn before(&self, stretch: Stretch) -> Option<Stretch> {
        match (stretch.held, stretch.round) {
            (false, round) => Some(self.held(round)),
            (true, 0) => None,
            (true, round) => Some(self.free(round - 1)),
        }
    }

    /// The stretch under way at `now_ns`, and if steps fall on this moment, the one after them
    /// (`done`) or before.
    fn at(&self, now_ns: u64, done: bool) -> Stretch {
        let mut stretch = match now_ns.checked_sub(self.freed_ns(0)) {
            None => self.held(0),
            Some(since) => {
                let period = self.free.wall_ns + self.held.wall_ns;
                let (round, rest) = (since / period, since % period);
                match rest < self.free.wall_ns {
                    true => self.free(round),
                    false => self.held(round + 1),
                }
            }
        };
        while !done
            && stretch.from_ns == now_ns
            && let Some(before) = self.before(stretch)
        {
            stretch = before;
        }
        stretch
    }
}

/// More rounds than this begin another streak: times stay within 64 bits, whatever the work of a
/// round and the CPU's speed, and the events of streaks that ended early are soon gone.
const MOST_ROUNDS: u64 = 1 << 13;

impl Kernel<'_> {
    /// The running task has just locked a mutex: if it goes on with rounds that nobody disturbs,
    /// begins a streak. Returns whether it did.
    pub(super) fn begin_streak(&mut self, cpu: usize, task: u32) -> bool {
        self.settle_lines(cpu);
        let alone = self.nr(cpu) == 1 && self.queues[cpu].nr == 1;
        let t = &mut self.tasks[task as usize];
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
        let mutex = first + t.drawn;
        let rounds = (times - t.rounds).min(MOST_ROUNDS);
        let c = &mut self.cpus[cpu];
        let calm = t.place == Place::Host
            && self.mutexes[mutex as usize].is_calm()
            && alone
            && !self.stepwise;
        if !calm || first != same || to as usize != pc - 1 || held_ns == 0 || rounds < 2 {
            return false;
        }
        let span = |work_ns: u64| Span {
            work_ns,
            wall_ns: c.wall_ns(work_ns),
        };
        let first = span(held_ns + std::mem::take(&mut t.debt_ns));
        let streak = Streak {
            mutex,
            pc: pc as u32,
            rounds: [t.rounds, rounds],
            start_ns: self.now,
            first,
            free: span(free_ns),
            held: span(held_ns),
        };
        t.left_ns = first.work_ns;
        self.mutexes[mutex as usize].streak = Some(cpu as u32);
        c.streak = Some(streak);
        c.segment_start_ns = self.now;
        c.segment_tag = c.segment_tag.wrapping_add(1);
        self.events.push(Event {
            at_ns: streak.freed_ns(rounds - 1),
            kind: kind::SEGMENT,
            key: cpu as u32,
            tag: c.segment_tag,
        });
        true
    }

    /// A CPU's streak, if it has one, is over at its last round's yield.
    pub(super) fn finish_streak(&mut self, cpu: usize) {
        let Some(streak) = self.cpus[cpu].streak.take() else {
            return;
        };
        self.mutexes[streak.mutex as usize].streak = None;
        if let Some(task) = self.cpus[cpu].current {
            let t = &mut self.tasks[task as usize];
            t.pc = streak.pc + 1;
            t.rounds = streak.rounds[0] + streak.rounds[1] - 1;
        }
    }

    /// Ends a CPU's streak, if it has one, at this moment: from here on every step is an event.
    pub(super) fn end_streak(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let (Some(streak), Some(task)) = (c.streak.take(), c.current) else {
            return;
        };
        let done = (kind::SEGMENT, cpu as u32) < self.handled;
        let stretch = streak.at(self.now, done);
        let t = &mut self.tasks[task as usize];
        t.rounds = streak.rounds[0] + stretch.round;
        t.left_ns = stretch.span.work_ns;
        t.pc = streak.pc + if stretch.held { 1 } else { 4 };
        let m = &mut self.mutexes[streak.mutex as usize];
        m.streak = None;
        if !stretch.held {
            m.word = Word::Free;
            m.owner = None;
        }
        c.segment_start_ns = stretch.from_ns;
        c.segment_tag = c.segment_tag.wrapping_add(1);
        self.events.push(Event {
            at_ns: stretch.from_ns + stretch.span.wall_ns,
            kind: kind::SEGMENT,
            key: cpu as u32,
            tag: c.segment_tag,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every moment of a streak held against a walk over its steps.
    #[test]
    fn a_moment_is_in_the_stretch_that_a_walk_finds() {
        let span = |ns| Span {
            work_ns: ns,
            wall_ns: ns,
        };
        for (first, free, held) in [(9, 2, 5), (5, 0, 5), (1, 1, 1), (7, 3, 1)] {
            let streak = Streak {
                mutex: 0,
                pc: 1,
                rounds: [3, 6],
                start_ns: 100,
                first: span(first),
                free: span(free),
                held: span(held),
            };
            for now_ns in 100..streak.freed_ns(5) {
                for done in [false, true] {
                    let mut walk = streak.held(0);
                    loop {
                        let to = walk.from_ns + walk.span.wall_ns;
                        if to > now_ns || (to == now_ns && !done) {
                            break;
                        }
                        walk = match walk.held {
                            true => streak.free(walk.round),
                            false => streak.held(walk.round + 1),
                        };
                        assert_eq!(walk.from_ns, to);
                    }
                    let found = streak.at(now_ns, done);
                    assert_eq!(
                        (found.round, found.held, found.from_ns),
                        (walk.round, walk.held, walk.from_ns),
                        "at {now_ns}, {done}: {streak:?}"
                    );
                }
            }
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Many rounds of a task's work as one segment.
//!
//! A task that is alone on its CPU may repeat the same round many times: a stretch of work, another
//! stretch, and so on, with nothing in between that another task could see. The end of each stretch
//! is known beforehand, so the rounds are one segment, a streak. A streak ends with the first
//! stretch of its last round, or earlier: when a task is enqueued on the CPU, when the work is
//! interrupted, or when the task's program says so. The segment is then the stretch under way, as
//! if every stretch had been a segment, and the program is told which stretch it is when it asks.
//! This must hold also when another event falls on the very nanosecond of a step, so the owner of
//! the run handles the events of one moment by kind and CPU, not by arrival.

/// The rounds of a streak; times are work, in nanoseconds at full capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// The length of a round's first stretch; in the first round, the task's charges are added to
    /// it.
    pub held_ns: u64,
    /// The length of a round's second stretch.
    pub free_ns: u64,
    /// The number of rounds, at least 2. The segment ends with the first stretch of the last one.
    pub rounds: u64,
}

/// The place at which a streak ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The round under way, from 0.
    pub round: u64,
    /// True if the streak ended in the round's first stretch.
    pub held: bool,
    /// True if the streak ended with its last stretch, which then is over too.
    pub whole: bool,
}

/// A streak under way: the stretch `first`, then the stretches `free` and `held` for each further
/// round.
#[derive(Clone, Copy, Debug)]
pub struct Streak {
    /// The number of rounds in the streak.
    pub(super) rounds: u64,
    /// The time at which the streak began, in nanoseconds.
    pub(super) start_ns: u64,
    /// The time for which the mutex is held in the first round, including the task's charges; then
    /// the times for which it is free and held in each further round.
    pub(super) first: Span,
    pub(super) free: Span,
    pub(super) held: Span,
}

/// The length of a stretch of work: in nanoseconds at full capacity, and in nanoseconds on this
/// CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) work_ns: u64,
    pub(super) wall_ns: u64,
}

/// A stretch of a streak: its round, whether the mutex is held during it, its beginning and its
/// length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub(super) round: u64,
    pub(super) held: bool,
    pub(super) from_ns: u64,
    pub(super) span: Span,
}

impl Streak {
    /// Returns the time at which the mutex is freed in the round of number `round` (from 0).
    pub(super) fn freed_ns(&self, round: u64) -> u64 {
        self.start_ns + self.first.wall_ns + round * (self.free.wall_ns + self.held.wall_ns)
    }

    fn held(&self, round: u64) -> Stretch {
        let span = if round == 0 { self.first } else { self.held };
        Stretch { round, held: true, from_ns: self.freed_ns(round) - span.wall_ns, span }
    }

    fn free(&self, round: u64) -> Stretch {
        Stretch { round, held: false, from_ns: self.freed_ns(round), span: self.free }
    }

    fn before(&self, stretch: Stretch) -> Option<Stretch> {
        match (stretch.held, stretch.round) {
            (false, round) => Some(self.held(round)),
            (true, 0) => None,
            (true, round) => Some(self.free(round - 1)),
        }
    }

    /// Returns the stretch under way at `now_ns`. If steps fall on this very moment, `done` says
    /// whether they are done: then it is the stretch after them, otherwise the one before them.
    pub(super) fn at(&self, now_ns: u64, done: bool) -> Stretch {
        let mut stretch = match now_ns.checked_sub(self.freed_ns(0)) {
            None => self.held(0),
            Some(since) => {
                let period = self.free.wall_ns + self.held.wall_ns;
                let (round, rest) = (since / period, since % period);
                if rest < self.free.wall_ns { self.free(round) } else { self.held(round + 1) }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares every moment of a streak with a walk over its steps.
    #[test]
    fn a_moment_is_in_the_stretch_that_a_walk_finds() {
        let span = |ns| Span { work_ns: ns, wall_ns: ns };
        for (first, free, held) in [(9, 2, 5), (5, 0, 5), (1, 1, 1), (7, 3, 1)] {
            let streak = Streak {
                rounds: 6,
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
                        walk = if walk.held {
                            streak.free(walk.round)
                        } else {
                            streak.held(walk.round + 1)
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

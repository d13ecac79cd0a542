// SPDX-License-Identifier: GPL-2.0-or-later
//! The rounds of interrupts by which a CPU that turns to something lower has the overloaded CPUs push
//! their tasks (`tell_cpu_to_push` and `rto_push_irq_work_func` of 6.12, RT_PUSH_IPI).
//!
//! One such interrupt at most is under way in the root domain. It goes from one overloaded CPU to the
//! next, and each pushes what it can. A CPU that asks while a round is under way is only counted: at
//! the end of the mask the round starts over if anybody has asked since it last did so.

use super::overload::first_of;
use crate::class::RunQueues;
use crate::hardware::{Access, Field, Symbol};

/// The state of the round.
#[derive(Debug, Default)]
pub(crate) struct Round {
    /// How often CPUs have asked (`rto_loop_next`).
    asked: u64,
    /// How many of these the pass over the mask that is under way answers (`rto_loop`).
    answered: u64,
    /// The CPU to which the interrupt was sent last, until the round ends (`rto_cpu`).
    at: Option<usize>,
    /// The time until which a CPU holds `rto_loop_start`, which is about to begin a round.
    held_until_ns: u64,
}

impl Round {
    /// Moves on to the next CPU of `mask`, which is `None` at the end of the round. Also returns how
    /// often this looked at the mask.
    fn advance(&mut self, mask: &[u64]) -> (Option<usize>, u32) {
        let mut looks = 1;
        self.at = first_of(mask, self.at.map_or(0, |cpu| cpu + 1));
        if self.at.is_none() && self.answered != self.asked {
            self.answered = self.asked;
            self.at = first_of(mask, 0);
            looks = 2;
        }
        (self.at, looks)
    }
}

impl RunQueues {
    /// Returns whether CPUs have others push by interrupt, and pull no task themselves.
    #[inline]
    pub(crate) fn asks_by_interrupt(&self) -> bool {
        self.rules.asks_to_push()
    }

    /// Counts a CPU that asks, and tries to take `rto_loop_start` for it.
    pub(crate) fn ask_push(&mut self) {
        self.rt_domain_mut().round.asked += 1;
        self.line(Symbol::PullRtTask, Field::RtoLoopNext, Access::Store);
        self.line(Symbol::PullRtTask, Field::RtoLoopStart, Access::Store);
    }

    /// Returns whether `rto_loop_start` is free at `at_ns`.
    pub(crate) fn may_begin_round(&self, at_ns: u64) -> bool {
        at_ns >= self.rt_domain().round.held_until_ns
    }

    /// Begins a round, unless one is under way. Returns the CPU to interrupt.
    pub(crate) fn begin_round(&mut self) -> Option<usize> {
        self.line(Symbol::RawSpinLock, Field::RtoLock, Access::Store);
        let to = match self.round_at() {
            None => self.advance_round(),
            Some(_) => None,
        };
        self.line(Symbol::PullRtTask, Field::RtoLoopStart, Access::Store);
        to
    }

    /// Notes that the CPU that has just begun a round holds `rto_loop_start` until `until_ns`.
    pub(crate) fn hold_round(&mut self, until_ns: u64) {
        self.rt_domain_mut().round.held_until_ns = until_ns;
    }

    /// Returns whether `cpu`, which the interrupt has reached, has tasks to push.
    pub(crate) fn take_round(&mut self, cpu: usize) -> bool {
        self.line(Symbol::IrqWorkSingle, Field::RtoPushWork, Access::Store);
        !self.cpus[cpu].rt.pushable.is_empty()
    }

    /// Passes the interrupt on. Returns the CPU to interrupt next; `None` ends the round.
    pub(crate) fn pass_round(&mut self) -> Option<usize> {
        self.line(Symbol::RawSpinLock, Field::RtoLock, Access::Store);
        self.advance_round()
    }

    /// Returns the CPU to which the round's interrupt was sent and which has not passed it on.
    pub(crate) fn round_at(&self) -> Option<usize> {
        self.rt.as_ref()?.round.at
    }

    fn advance_round(&mut self) -> Option<usize> {
        let domain = self.rt_domain_mut();
        let (to, looks) = domain.round.advance(&domain.mask);
        for _ in 0..looks {
            self.line(Symbol::RtoNextCpu, Field::RtoMaskPointer, Access::Load);
            self.line(Symbol::RtoNextCpu, Field::RtoMask, Access::Load);
        }
        if to.is_some() {
            self.line(Symbol::IrqWorkQueueOn, Field::RtoPushWork, Access::Store);
        }
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the CPUs to which a round goes until it ends.
    fn rest(round: &mut Round, mask: &[u64]) -> Vec<usize> {
        std::iter::from_fn(|| round.advance(mask).0).collect()
    }

    #[test]
    fn a_round_goes_twice_over_the_mask_for_one_that_asked() {
        let mut round = Round::default();
        round.asked += 1;
        // The first pass may have missed what came behind it, so that it counts for nothing.
        assert_eq!(rest(&mut round, &[0b1010, 1]), [1, 3, 64, 1, 3, 64]);
        assert_eq!(rest(&mut round, &[0b1010, 1]), [1, 3, 64]);
    }

    #[test]
    fn a_round_starts_over_for_each_that_asks_meanwhile() {
        let mut round = Round::default();
        round.asked += 1;
        let mask = [0b110];
        assert_eq!(round.advance(&mask), (Some(1), 1));
        round.asked += 1;
        assert_eq!(rest(&mut round, &mask), [2, 1, 2]);
        assert_eq!(round.at, None);
    }

    #[test]
    fn an_empty_mask_ends_the_round_at_the_second_look() {
        let mut round = Round::default();
        round.asked += 1;
        assert_eq!(round.advance(&[0]), (None, 2));
        assert_eq!(round.advance(&[0]), (None, 1));
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Events that are rare on a real machine, brought about from a seed: another CPU was faster to claim
//! an idle one, an interrupt or a timer is late, a callback is interrupted.

use perch_engine::Random;

/// None of them without a seed.
pub(crate) struct Faults(Option<Random>);

/// One of so many claims is lost.
const LOST: u64 = 8;
/// One of so many interrupts and timers is late, by so many nanoseconds at the most.
const LATE: u64 = 4;
const LATE_NS: u64 = 200_000;
/// One of so many callbacks is interrupted, for so many nanoseconds at the most.
const HELD: u64 = 16;
const HELD_NS: u64 = 100_000;

impl Faults {
    pub fn new(seed: Option<u64>) -> Faults {
        Faults(seed.map(|seed| Random::new(seed, 0)))
    }

    /// Another CPU claims the idle CPU at the same moment. It leaves it alone afterwards, so the
    /// CPU stays in the mask.
    pub fn loses_claim(&mut self) -> bool {
        self.0.as_mut().is_some_and(|draws| draws.below(LOST) == 0)
    }

    /// The time by which an interrupt or a timer is late.
    pub fn late_ns(&mut self) -> u64 {
        self.sometimes(LATE, LATE_NS)
    }

    /// The time for which other events come between a callback and what the kernel does next.
    pub fn held_ns(&mut self) -> u64 {
        self.sometimes(HELD, HELD_NS)
    }

    /// Once in so many times up to so many nanoseconds, else none.
    fn sometimes(&mut self, one_in: u64, most_ns: u64) -> u64 {
        let draws = self.0.as_mut();
        draws.map_or(0, |draws| match draws.below(one_in) {
            0 => draws.below(most_ns),
            _ => 0,
        })
    }
}

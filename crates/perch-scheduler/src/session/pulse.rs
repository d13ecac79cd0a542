// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether the timer of a loaded program still comes, with a service manager or without one.

use std::time::{Duration, Instant};

use super::GLANCE;

/// A timer that stands still for so long does not come back: it comes each second at the least. The
/// service's watchdog is there for a process that hangs, and waits longer.
const STILL: Duration = Duration::from_secs(20);

/// What was last seen of the timer.
pub(super) struct Pulse {
    turns: u64,
    looked: Instant,
    still: Duration,
}

impl Pulse {
    /// A timer that has come `turns` times.
    pub fn new(turns: u64, now: Instant) -> Pulse {
        Pulse { turns, looked: now, still: Duration::ZERO }
    }

    /// Looks again: the time for which the timer stands still, once it is too long. Between two looks no
    /// more counts than lies between them where this process runs: it may have been stopped, and the
    /// timer with it, as in a virtual machine that pauses.
    pub fn stands_still(&mut self, turns: u64, now: Instant) -> Option<Duration> {
        self.still += now.duration_since(self.looked).min(GLANCE);
        self.looked = now;
        if turns != self.turns {
            (self.turns, self.still) = (turns, Duration::ZERO);
        }
        (self.still >= STILL).then_some(self.still)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_that_comes_no_more_is_noticed_and_a_pause_is_not() {
        let mut now = Instant::now();
        let mut pulse = Pulse::new(5, now);
        let mut look = |turns, passed| {
            now += passed;
            pulse.stands_still(turns, now)
        };
        assert_eq!(look(5, 1000 * STILL), None);
        assert_eq!(look(6, GLANCE), None);
        let looks = STILL.as_millis() / GLANCE.as_millis();
        for _ in 1..looks {
            assert_eq!(look(6, 2 * GLANCE), None);
        }
        assert_eq!(look(6, GLANCE), Some(STILL));
        assert_eq!(look(7, GLANCE), None);
    }
}

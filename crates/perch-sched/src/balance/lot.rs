// SPDX-License-Identifier: GPL-2.0-or-later
//! The lot that 7.2 draws before a newidle pass over a domain: passes are tried as often as they
//! succeeded lately (docs/mechanisms/stock.md#balance).

/// Out of how many parts the share of passes that are tried is counted.
const WHOLE: u32 = 1024;

/// The newidle passes over one domain of one CPU, those left out included (`update_newidle_stats`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Lot {
    /// The successes lately, each counted as often as passes were left out for one that was tried.
    success: u32,
    /// The number of passes lately.
    calls: u32,
    /// The share of the passes that are tried, in 1024ths.
    share: u32,
    /// The time at which that share was last worked out.
    shared_ns: u64,
}

impl Lot {
    /// Returns the lot before any pass: half of them are tried.
    pub fn new() -> Lot {
        Lot { success: WHOLE / 4, calls: WHOLE / 2, share: WHOLE / 2, shared_ns: 0 }
    }

    /// Draws whether a pass is tried; `draw` is a random number below 1024. Returns for how many
    /// passes its success counts, the inverse of the share, or `None` if the pass is left out.
    pub fn draw(&self, draw: u64) -> Option<u32> {
        if self.share >= WHOLE {
            return Some(1);
        }
        let tried = 1 + self.share;
        (draw <= u64::from(tried)).then_some((WHOLE + tried / 2) / tried)
    }

    /// Counts a pass at `now_ns`, and its success. Every 1024 passes the share is worked out anew,
    /// and old passes count half from then on. The share is higher by 1/1024 for each 4 ms that
    /// those passes took: a CPU that seldom goes idle can afford to look.
    pub fn note(&mut self, now_ns: u64, success: u32) {
        self.calls += 1;
        self.success += success;
        if self.calls >= WHOLE {
            let drift = (now_ns - self.shared_ns) >> 22;
            self.shared_ns = now_ns;
            self.share = (drift + u64::from(self.success)).min(WHOLE.into()) as u32;
            self.calls /= 2;
            self.success /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes `passes` passes, `gap_ns` apart, of which those that are tried succeed as `succeeds`
    /// says, with draws that run through all values. Returns how many were tried.
    fn passes(lot: &mut Lot, from_ns: u64, passes: u64, gap_ns: u64, succeeds: bool) -> u64 {
        let mut tried = 0;
        for i in 0..passes {
            let drawn = lot.draw((i * 389) % 1024);
            tried += u64::from(drawn.is_some());
            lot.note(from_ns + i * gap_ns, drawn.map_or(0, |n| n * u32::from(succeeds)));
        }
        tried
    }

    #[test]
    fn passes_that_succeed_are_tried_ever_more_often() {
        let mut lot = Lot::new();
        passes(&mut lot, 0, 20_000, 1_000, true);
        let tried = passes(&mut lot, 20_000_000, 1024, 1_000, true);
        // From two thirds on the inverse is rounded to one, and the share rises no more.
        assert!(tried > 682, "{tried} of 1024: {lot:?}");
    }

    #[test]
    fn passes_that_fail_are_tried_by_the_time_that_they_take() {
        // 512 passes of 10 us apart are 5 ms: the share keeps one 1024th for each 4 ms.
        let mut lot = Lot::new();
        passes(&mut lot, 0, 20_000, 10_000, false);
        let tried = passes(&mut lot, 200_000_000, 1024, 10_000, false);
        assert!((1..=4).contains(&tried), "{tried} of 1024: {lot:?}");
        // 2 ms apart they are a second: a quarter of them is tried, though none succeeds.
        let mut lot = Lot::new();
        passes(&mut lot, 0, 20_000, 2_000_000, false);
        let tried = passes(&mut lot, 40_000_000_000, 1024, 2_000_000, false);
        assert!((200..=300).contains(&tried), "{tried} of 1024: {lot:?}");
    }

    #[test]
    fn a_success_counts_for_the_passes_left_out() {
        let lot = Lot { share: 127, ..Lot::new() };
        assert_eq!(lot.draw(128), Some(8));
        assert_eq!(lot.draw(129), None);
        let always = Lot { share: 1024, ..Lot::new() };
        assert_eq!(always.draw(1023), Some(1));
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The averages of what a CPU has queued, by which 3.4 balances.

/// The weight of what a CPU has queued, averaged over the ticks (`cpu_load[]`): the n-th moves by
/// a 2^n-th of the way at each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weights {
    pub(super) averages: [u64; 5],
    /// The tick of the last update.
    tick: u64,
}

impl Weights {
    /// A tick finds so much queued; in all others since the last one nothing was.
    pub(super) fn advance(&mut self, tick: u64, weight: u64) {
        let missed = tick.saturating_sub(self.tick).saturating_sub(1);
        if tick <= self.tick {
            return;
        }
        self.tick = tick;
        self.averages[0] = weight;
        for (n, average) in self.averages.iter_mut().enumerate().skip(1) {
            let parts = 1u64 << n;
            // After so many nothing is left of 64 bits.
            for _ in 0..missed.min(64 * parts) {
                *average = *average * (parts - 1) / parts;
            }
            // Rounded towards the weight, or it would never be reached from below.
            let up = if weight > *average { parts - 1 } else { 0 };
            *average = (*average * (parts - 1) + weight + up) / parts;
        }
    }
}

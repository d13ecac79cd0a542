// SPDX-License-Identifier: GPL-2.0-or-later
//! The averages of a CPU's queued weight, by which 3.4 balances.

/// The queued weight of a CPU, averaged over the ticks (`cpu_load[]`): at each tick the n-th
/// average moves by a 2^n-th of the difference.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weights {
    pub(super) averages: [u64; 5],
    /// The tick of the last update.
    tick: u64,
}

impl Weights {
    /// Updates the averages at a tick that finds `weight` queued; at all other ticks since the last
    /// update nothing was queued.
    pub(super) fn advance(&mut self, tick: u64, weight: u64) {
        let missed = tick.saturating_sub(self.tick).saturating_sub(1);
        if tick <= self.tick {
            return;
        }
        self.tick = tick;
        self.averages[0] = weight;
        for (n, average) in self.averages.iter_mut().enumerate().skip(1) {
            let parts = 1u64 << n;
            // After this many ticks nothing is left of 64 bits.
            for _ in 0..missed.min(64 * parts) {
                *average = *average * (parts - 1) / parts;
            }
            // The average is rounded towards the weight, because it would never reach it from below
            // otherwise.
            let up = if weight > *average { parts - 1 } else { 0 };
            *average = (*average * (parts - 1) + weight + up) / parts;
        }
    }
}

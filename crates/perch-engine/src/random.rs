// SPDX-License-Identifier: GPL-2.0-or-later
//! Random numbers, which are the same on every machine. Every task has a stream of its own, so the
//! numbers that a task draws do not depend on how the others were scheduled.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// Begins stream number `stream` of `seed`.
    pub fn new(seed: u64, stream: u64) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Draws a number from 0 to `n` - 1, each as likely as any other; `n` must not be 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }
}

/// A distribution of times in nanoseconds, or of counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dist {
    /// Every draw gives this value.
    Const(u64),
    /// Draws are spread evenly from the first value to the second, both included; the first must
    /// not be the greater.
    Uniform(u64, u64),
    /// Draws are exponential with this mean, cut off at 16 times the mean.
    Exponential(u64),
    /// One in `one_in` draws, on average, gives `far`; the others give `near`.
    Mixed {
        /// The usual value.
        near: u64,
        /// The rare value.
        far: u64,
        /// Number of draws of which one, on average, gives the rare value; at least 1.
        one_in: u64,
    },
}

impl Dist {
    /// The values from `percent` below `mean` to `percent` above it, spread evenly; `percent` is at
    /// most 100.
    pub fn around(mean: u64, percent: u64) -> Dist {
        let spread = mean * percent / 100;
        Dist::Uniform(mean - spread, mean + spread)
    }

    /// Draws one value.
    #[inline]
    pub fn sample(self, random: &mut Random) -> u64 {
        match self {
            Dist::Const(value) => value,
            Dist::Uniform(low, high) => low + random.below(high - low + 1),
            Dist::Exponential(mean) => {
                // (0, 1], in steps of 2^-53. libm's logarithm is the same on every machine.
                let unit = (random.below(1 << 53) + 1) as f64 / (1u64 << 53) as f64;
                ((-libm::log(unit) * mean as f64) as u64).min(mean * 16)
            }
            Dist::Mixed { near, far, one_in } => {
                if random.below(one_in) == 0 {
                    far
                } else {
                    near
                }
            }
        }
    }

    /// The mean of the distribution, rounded down.
    #[inline]
    pub fn mean(self) -> u64 {
        match self {
            Dist::Const(value) => value,
            Dist::Uniform(low, high) => (low + high) / 2,
            Dist::Exponential(mean) => mean,
            Dist::Mixed { near, far, one_in } => (near * (one_in - 1) + far) / one_in,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_met() {
        let dists = [
            Dist::Const(1000),
            Dist::around(1000, 20),
            Dist::Exponential(1000),
            Dist::Mixed { near: 500, far: 5500, one_in: 10 },
        ];
        for dist in dists {
            let mut random = Random::new(7, 1);
            let n = 200_000;
            let sum: u64 = (0..n).map(|_| dist.sample(&mut random)).sum();
            let mean = sum / n;
            assert!(mean.abs_diff(dist.mean()) <= 10, "{dist:?}: {mean}");
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! How long woken tasks waited: counts by length, in buckets that are a 32nd of an octave wide.
//!
//! Every wake-up of every run comes here, so one costs a handful of instructions, and no memory that
//! grows. What tools like schbench print, which is a score, comes from an HDR histogram (see
//! `requests.rs`).

/// Significant bits of a bucket's bounds below the first: a bucket is at most a 32nd of its value
/// wide.
const BITS: u32 = 5;
/// Bits of a double below these.
const SHIFT: u32 = f64::MANTISSA_DIGITS - 1 - BITS;
/// What the double 1 begins with. Doubles are ordered as the integers of their bits are, and what
/// their first bits count are buckets.
const FIRST: u64 = 1.0f64.to_bits() >> SHIFT;
/// 2^43 ns is more than two hours.
const OCTAVES: usize = 43;
const BUCKETS: usize = OCTAVES << BITS;

/// Counts of latencies by length; memory does not depend on how many there are.
#[derive(Clone, PartialEq, Eq)]
pub struct Latencies {
    counts: [u64; BUCKETS],
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies {
            counts: [0; BUCKETS],
        }
    }
}

/// The buckets that have anything.
impl std::fmt::Debug for Latencies {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.debug_map().entries(self.buckets()).finish()
    }
}

impl Latencies {
    /// Counts one, of so many nanoseconds. What is more than two hours counts as that.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let first = ((ns as i64 as f64).to_bits() >> SHIFT).wrapping_sub(FIRST) as usize;
        match self.counts.get_mut(first) {
            Some(count) => *count += 1,
            None => self.record_outside(ns),
        }
    }

    #[cold]
    fn record_outside(&mut self, ns: u64) {
        self.counts[if ns == 0 { 0 } else { BUCKETS - 1 }] += 1;
    }

    /// Adds what another one counted.
    pub fn add(&mut self, other: &Latencies) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    /// How many were counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The buckets that have any, shortest first: the longest latency that the bucket takes, in
    /// nanoseconds, and how many it has. 0 is in the bucket of 1.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let counts = self.counts.iter().enumerate();
        let counted = counts.filter(|(_, count)| **count > 0);
        counted.map(|(index, count)| (longest(index), *count))
    }

    /// The latency that this share of them, 0 to 1, did not exceed: the longest that its bucket
    /// takes, which is at most a 32nd more. 0 without any.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        let rank = (share * self.total() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let reached = self.buckets().find(|(_, count)| {
            seen += count;
            seen >= rank
        });
        reached.map_or(0, |(ns, _)| ns)
    }
}

/// The longest latency of a bucket, nanoseconds.
fn longest(index: usize) -> u64 {
    let next = f64::from_bits((FIRST + index as u64 + 1) << SHIFT);
    // Among the first octaves there are buckets between whole nanoseconds: they stay empty.
    (next.ceil() as u64) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use perch_engine::Random;

    /// A bucket takes what is up to its longest and more than the one before it, at most a 32nd less.
    #[test]
    fn a_latency_is_in_the_first_bucket_that_reaches_it() {
        let mut random = Random::new(1, 1);
        let edges = (0..43).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        let drawn: Vec<u64> = (0..20_000).map(|i| random.below(2 << (i % 42))).collect();
        for ns in edges.chain(drawn) {
            let mut one = Latencies::default();
            one.record(ns);
            let found: Vec<(u64, u64)> = one.buckets().collect();
            let [(longest, 1)] = found[..] else {
                panic!("{ns}: {found:?}");
            };
            assert!(
                longest >= ns && (longest - ns) * 32 <= ns.max(32),
                "{ns} in {longest}"
            );
            // The next longer one is in another bucket.
            one.record(longest + 1);
            assert!(
                one.buckets().count() == 2 || longest == 1 && ns == 0,
                "{longest}"
            );
            assert!(ns >= 64 || longest == ns.max(1), "{ns} in {longest}");
        }
    }

    #[test]
    fn what_is_too_long_is_the_longest() {
        let mut all = Latencies::default();
        for ns in [1 << 43, u64::MAX, i64::MAX as u64] {
            all.record(ns);
        }
        assert_eq!(all.buckets().collect::<Vec<_>>(), [((1 << 43) - 1, 3)]);
    }

    #[test]
    fn quantiles_are_those_of_a_sort_and_sums_are_of_all() {
        let mut random = Random::new(1, 2);
        let (mut a, mut b) = (Latencies::default(), Latencies::default());
        let mut all: Vec<u64> = (0..10_001).map(|_| 1 + random.below(90_000)).collect();
        let halves = all.split_at(3000);
        halves.0.iter().for_each(|ns| a.record(*ns));
        halves.1.iter().for_each(|ns| b.record(*ns));
        a.add(&b);
        all.sort_unstable();
        assert_eq!(a.total(), 10_001);
        for share in [0.0, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let rank = ((share * 10_001.0_f64).ceil() as usize).max(1);
            let (found, sorted) = (a.quantile_ns(share), all[rank - 1]);
            assert!(
                found >= sorted && found <= sorted + sorted / 32,
                "{share}: {found} {sorted}"
            );
        }
        assert_eq!(Latencies::default().quantile_ns(0.5), 0);
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The times that woken tasks waited: counts by length, in buckets that are a 32nd of an octave
//! wide.
//!
//! Every wake-up of every run is recorded here, so a record costs a handful of instructions, and no
//! memory that grows. The latencies that tools like schbench print, which are scores, come from an
//! HDR histogram (see `requests.rs`).

/// The significant bits of a bucket's bounds below the first: a bucket's width is at most a 32nd of
/// its value.
const BITS: u32 = 5;
/// The number of bits of a double below those.
const SHIFT: u32 = f64::MANTISSA_DIGITS - 1 - BITS;
/// The first bits of the double 1. Doubles have the order of their bits read as integers, so the
/// first bits of a double number its bucket.
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
        Latencies { counts: [0; BUCKETS] }
    }
}

/// Shows the buckets that are not empty.
impl std::fmt::Debug for Latencies {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.debug_map().entries(self.buckets()).finish()
    }
}

impl Latencies {
    /// Counts a latency of `ns` nanoseconds. One of more than two hours counts as the longest.
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

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Latencies) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    /// Returns the number of latencies that were counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the buckets that are not empty, shortest first: the longest latency that belongs
    /// into the bucket, in nanoseconds, and the bucket's count. A latency of 0 is in the bucket of
    /// 1.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let counts = self.counts.iter().enumerate();
        let counted = counts.filter(|(_, count)| **count > 0);
        counted.map(|(index, count)| (longest(index), *count))
    }

    /// Returns the latency, in nanoseconds, that `share` (0 to 1) of the latencies did not exceed:
    /// the longest of its bucket, which is at most a 32nd more. Returns 0 if there are no
    /// latencies.
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

/// Returns the longest latency of a bucket, in nanoseconds.
fn longest(index: usize) -> u64 {
    let next = f64::from_bits((FIRST + index as u64 + 1) << SHIFT);
    // In the first octaves, some buckets lie between whole nanoseconds; they stay empty.
    (next.ceil() as u64) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use perch_engine::Random;

    /// A bucket takes the latencies up to its longest that are longer than those of the bucket
    /// before it; they are at most a 32nd shorter than its longest.
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
            assert!(longest >= ns && (longest - ns) * 32 <= ns.max(32), "{ns} in {longest}");
            // The next longer one is in another bucket.
            one.record(longest + 1);
            assert!(one.buckets().count() == 2 || longest == 1 && ns == 0, "{longest}");
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
            assert!(found >= sorted && found <= sorted + sorted / 32, "{share}: {found} {sorted}");
        }
        assert_eq!(Latencies::default().quantile_ns(0.5), 0);
    }
}

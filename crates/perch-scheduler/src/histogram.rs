// SPDX-License-Identifier: GPL-2.0-or-later
//! Times by how long they are, such as those that the runs of a program took, as bpf/histogram.h
//! counts them.

/// Bits of a time that are kept.
const FINE_BITS: u32 = 7;
const FINE: usize = 1 << FINE_BITS;
const MAX_SHIFT: usize = 32;
const BUCKETS: usize = (MAX_SHIFT + 2) * FINE;

/// Size of all buckets in the map.
pub const BYTES: usize = 16 * BUCKETS;

/// A run that takes longer than so many medians has waited for other CPUs.
const LONG: f64 = 10.0;

/// Runs by how long they took.
pub struct Histogram {
    /// Runs and the sum of their ns, from the shortest; none is empty.
    buckets: Vec<(u64, u64)>,
}

impl Histogram {
    /// From the map's bytes.
    pub fn new(bytes: &[u8]) -> Histogram {
        let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |word| u64::from_ne_bytes(*word));
        let pairs = bytes[..bytes.len().min(BYTES)].chunks_exact(16);
        let buckets = pairs.map(|pair| (word(pair), word(&pair[8..])));
        Histogram { buckets: buckets.filter(|(runs, _)| *runs > 0).collect() }
    }

    /// How many there are.
    pub fn runs(&self) -> u64 {
        self.buckets.iter().map(|(runs, _)| runs).sum()
    }

    /// The mean in ns; 0 without any.
    pub fn mean(&self) -> f64 {
        let ns: u64 = self.buckets.iter().map(|(_, ns)| ns).sum();
        ns as f64 / self.runs().max(1) as f64
    }

    /// Half of the runs took no longer, in ns; 0 without any.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// This part of the runs, more than 0 and at most 1, took no longer, in ns to 1 in 128; 0
    /// without any.
    pub fn quantile(&self, part: f64) -> f64 {
        let wanted = (part * self.runs() as f64).ceil() as u64;
        let mut below = 0;
        let bucket = self.buckets.iter().find(|(runs, _)| {
            below += runs;
            below >= wanted
        });
        bucket.map_or(0.0, |(runs, ns)| *ns as f64 / *runs as f64)
    }

    /// The mean in ns without runs longer than ten medians, and how many those are.
    pub fn mean_within_ten_medians(&self) -> (f64, u64) {
        let limit = LONG * self.median();
        let (mut runs, mut ns, mut dropped) = (0, 0, 0);
        for (n, sum) in &self.buckets {
            if *sum as f64 <= limit * *n as f64 {
                runs += n;
                ns += sum;
            } else {
                dropped += n;
            }
        }
        (ns as f64 / runs.max(1) as f64, dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(buckets: &[(usize, u64, u64)]) -> Histogram {
        let mut bytes = vec![0; BYTES];
        for (at, runs, ns) in buckets {
            bytes[16 * at..16 * at + 8].copy_from_slice(&runs.to_ne_bytes());
            bytes[16 * at + 8..16 * at + 16].copy_from_slice(&ns.to_ne_bytes());
        }
        Histogram::new(&bytes)
    }

    #[test]
    fn who_waited_is_not_in_the_mean() {
        let found = histogram(&[(100, 6, 600), (140, 3, 460), (2000, 1, 100_000)]);
        assert_eq!(found.runs(), 10);
        assert_eq!(found.median(), 100.0);
        assert_eq!(found.quantile(0.9), 460.0 / 3.0);
        assert_eq!(found.quantile(1.0), 100_000.0);
        assert_eq!(found.mean_within_ten_medians(), (1060.0 / 9.0, 1));
    }

    #[test]
    fn nothing_costs_nothing() {
        let none = histogram(&[]);
        assert_eq!((none.runs(), none.median()), (0, 0.0));
        assert_eq!(none.mean_within_ten_medians(), (0.0, 0));
    }
}

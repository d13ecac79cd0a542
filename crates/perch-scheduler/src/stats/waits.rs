// SPDX-License-Identifier: GPL-2.0-or-later
//! How long tasks waited for a CPU, as reports have it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The waits for a CPU of one reason that have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waits {
    /// How many.
    pub count: u64,
    /// Their sum, nanoseconds.
    pub sum_ns: u64,
    /// How many by their length: entry `b` has those of at most 2^b µs that are in none before it,
    /// and the last entry all that are longer.
    pub buckets: Vec<u64>,
}

impl Waits {
    /// Their mean, nanoseconds; 0 without any.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns as f64 / self.count.max(1) as f64
    }

    /// A time, in µs and a power of two, that this part of them, more than 0 and at most 1, did
    /// not exceed; infinite if some of them are in the last bucket, and none without any waits.
    pub fn quantile_us(&self, part: f64) -> Option<f64> {
        let all: u64 = self.buckets.iter().sum();
        let wanted = ((part * all as f64).ceil() as u64).clamp(1, all.max(1));
        let mut below = 0;
        let found = self.buckets.iter().position(|count| {
            below += count;
            below >= wanted
        });
        found.map(|bucket| self.bound_us(bucket))
    }

    /// The longest waits of a bucket, µs; infinite for the last.
    pub fn bound_us(&self, bucket: usize) -> f64 {
        if bucket + 1 < self.buckets.len() { 2f64.powi(bucket as i32) } else { f64::INFINITY }
    }

    /// Adds those of another reason or cgroup.
    pub fn add(&mut self, other: &Waits) {
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (sum, count) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum += count;
        }
    }

    /// Those that are not among `earlier` of the same scheduler.
    #[must_use]
    pub fn since(&self, earlier: &Waits) -> Waits {
        let before = earlier.buckets.iter().chain(std::iter::repeat(&0));
        let buckets = self.buckets.iter().zip(before);
        Waits {
            count: self.count.saturating_sub(earlier.count),
            sum_ns: self.sum_ns.saturating_sub(earlier.sum_ns),
            buckets: buckets.map(|(now, was)| now.saturating_sub(*was)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(buckets: &[u64]) -> Waits {
        Waits {
            count: buckets.iter().sum(),
            sum_ns: 1_000 * buckets.iter().sum::<u64>(),
            buckets: buckets.to_vec(),
        }
    }

    #[test]
    fn quantiles_are_upper_bounds() {
        let some = waits(&[0, 0, 50, 49, 0, 1, 0]);
        assert_eq!(some.quantile_us(0.5), Some(4.0));
        assert_eq!(some.quantile_us(0.99), Some(8.0));
        assert_eq!(some.quantile_us(1.0), Some(32.0));
        assert_eq!(some.mean_ns(), 1_000.0);
        assert_eq!(waits(&[1, 1]).quantile_us(1.0), Some(f64::INFINITY));
    }

    #[test]
    fn no_waits_have_no_quantile() {
        assert_eq!(waits(&[0, 0]).quantile_us(0.5), None);
        assert_eq!(Waits::default().quantile_us(0.5), None);
        assert_eq!(Waits::default().mean_ns(), 0.0);
    }

    #[test]
    fn sums_are_by_bucket() {
        let mut sum = Waits::default();
        sum.add(&waits(&[1, 5, 0]));
        sum.add(&waits(&[2, 0, 1]));
        assert_eq!(sum, waits(&[3, 5, 1]));
    }

    #[test]
    fn differences_are_by_bucket() {
        let change = waits(&[3, 5, 1]).since(&waits(&[1, 5, 0]));
        assert_eq!(change, waits(&[2, 0, 1]));
        // A report from before waits were counted has no buckets.
        assert_eq!(waits(&[3, 5]).since(&Waits::default()), waits(&[3, 5]));
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The paired bootstrap (Efron 1979), which tells how far a change can be trusted that is not a
//! change of means.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::statistic::percentile;
use crate::stats::Delta;

/// The number of tables that the bootstrap draws anew from the iterations. The ends of an interval
/// move by about a thirtieth of its width from one set of 2,000 draws to the next, which is less
/// than tables show of it.
const RESAMPLES: usize = 2_000;
/// With fewer iterations than this most resamples hold the same few values again and again, and the
/// interval would be narrow for want of data.
const LEAST: usize = 10;

/// Returns the change, in percent, of the value of `statistic` over the iterations, from `baseline`
/// to `patched`, whose `i`th iterations share a seed.
///
/// Each resample draws as many iterations as there are, with replacement and by the same numbers in
/// both arms, so that what a seed does to both alike cancels. The interval is half the distance
/// between the two changes that 2.5 and 97.5 % of the resamples stay under. All draws come from
/// `seed`.
///
/// The interval is none for fewer than ten iterations, and where the statistic over the baseline of
/// a resample is 0, since a change from nothing has no percentage.
///
/// # Panics
/// Panics when the lengths differ, and when `statistic` panics.
pub(crate) fn bootstrap(
    baseline: &[f64],
    patched: &[f64],
    seed: u64,
    statistic: impl Fn(&[f64]) -> f64,
) -> Delta {
    assert_eq!(baseline.len(), patched.len(), "arms are compared seed by seed");
    let change = |b: &[f64], p: &[f64]| 100.0 * (statistic(p) / statistic(b) - 1.0);
    let pct = change(baseline, patched);
    let n = baseline.len();
    if n < LEAST {
        return Delta { pct, ci95_pct: None };
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut b, mut p) = (vec![0.0; n], vec![0.0; n]);
    let mut changes = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        for i in 0..n {
            // The high half of the product is below n, and for so few iterations it is as good as
            // evenly spread.
            let drawn = ((u128::from(random.next_u64()) * n as u128) >> 64) as usize;
            (b[i], p[i]) = (baseline[drawn], patched[drawn]);
        }
        changes.push(change(&b, &p));
    }
    let ci95_pct = changes.iter().all(|change| change.is_finite()).then(|| {
        changes.sort_unstable_by(f64::total_cmp);
        (percentile(&changes, 97.5) - percentile(&changes, 2.5)) / 2.0
    });
    Delta { pct, ci95_pct }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistic::Statistic;
    use crate::stats::{delta, mean};

    /// Returns values that scatter evenly over 0 to 1.
    fn scattered(seed: u64, n: usize) -> Vec<f64> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..n).map(|_| random.next_u32() as f64 / f64::from(u32::MAX)).collect()
    }

    #[test]
    fn of_the_mean_it_finds_students_interval() {
        let baseline: Vec<f64> = scattered(1, 100).iter().map(|x| 100.0 + x).collect();
        let patched: Vec<f64> = scattered(2, 100).iter().map(|x| 110.0 + 9.0 * x).collect();
        let (found, students) =
            (bootstrap(&baseline, &patched, 7, mean), delta(&baseline, &patched));
        assert!((found.pct - students.pct).abs() < 1e-9);
        let ratio = found.ci95_pct.unwrap() / students.ci95_pct.unwrap();
        assert!((0.9..1.1).contains(&ratio), "{ratio}");
    }

    /// For values evenly spread over 0 to 1 the deviation's own standard error over n of them is
    /// sqrt((1/80 - 1/144) / (4 n / 12)), 0.0129 for 100: 4.47 % of the deviation. Two independent
    /// arms have sqrt 2 times that, and 1.96 times the product on either side is an interval of
    /// 12.4 points where nothing changes.
    #[test]
    fn of_the_deviation_it_finds_what_theory_says() {
        let halves: Vec<f64> = (0..40)
            .map(|i| {
                let (b, p) = (scattered(1000 + i, 100), scattered(2000 + i, 100));
                Statistic::Std.change(&b, &p, i).ci95_pct.unwrap()
            })
            .collect();
        let half = mean(&halves);
        assert!((half - 12.4).abs() < 1.2, "{half}");
    }

    #[test]
    fn what_a_seed_does_to_both_arms_cancels() {
        let baseline = scattered(3, 50);
        let patched: Vec<f64> = baseline.iter().map(|x| 1.25 * x).collect();
        for statistic in crate::statistic::DESCRIBE {
            let found = statistic.change(&baseline, &patched, 1);
            assert!((found.pct - 25.0).abs() < 1e-9);
            assert!(found.ci95_pct.unwrap() < 1e-9);
        }
    }

    #[test]
    fn the_draws_come_from_the_seed_alone() {
        let (baseline, patched) = (scattered(4, 30), scattered(5, 30));
        let found = |seed| Statistic::Std.change(&baseline, &patched, seed);
        assert_eq!(found(1), found(1));
        assert_ne!(found(1).ci95_pct, found(2).ci95_pct);
    }

    #[test]
    fn too_few_iterations_and_a_change_from_nothing_have_no_interval() {
        let few = Statistic::Std.change(&scattered(1, 9), &scattered(2, 9), 1);
        assert!(few.pct.is_finite() && few.ci95_pct.is_none());
        let nothing = Statistic::Std.change(&[5.0; 20], &scattered(2, 20), 1);
        assert!(!nothing.pct.is_finite() && nothing.ci95_pct.is_none());
    }
}

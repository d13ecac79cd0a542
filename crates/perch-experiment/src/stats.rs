// SPDX-License-Identifier: GPL-2.0-or-later
//! Means, and the intervals that tell how far means can be trusted.

use distrs::StudentsT;

/// Returns the arithmetic mean.
///
/// # Panics
/// Panics when there are no values.
pub fn mean(values: &[f64]) -> f64 {
    assert!(!values.is_empty(), "the mean of nothing");
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns half the width of the 95 % confidence interval of the mean, in the values' unit
/// (Student's t); none for fewer than two values.
pub fn ci95(values: &[f64]) -> Option<f64> {
    let n = values.len();
    (n >= 2).then(|| t95(n - 1) * deviation(values) / (n as f64).sqrt())
}

/// Returns the standard deviation of a sample, in the values' unit: the sum of squares is divided
/// by one less than the number of values.
///
/// # Panics
/// Panics when there are fewer than two values.
pub fn deviation(values: &[f64]) -> f64 {
    assert!(values.len() >= 2, "the deviation of fewer than two values");
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// Returns the bound that Student's t with `freedom` degrees of freedom, 1 or more, stays within 95
/// times in 100, on either side of 0.
pub(crate) fn t95(freedom: usize) -> f64 {
    t95_between(freedom as f64)
}

/// The same for degrees of freedom that need not be whole.
fn t95_between(freedom: f64) -> f64 {
    StudentsT::ppf(0.975, freedom)
}

/// Returns the deviation of [`deviation`]; none for fewer than two values.
pub(crate) fn spread(values: &[f64]) -> Option<f64> {
    (values.len() >= 2).then(|| deviation(values))
}

/// Returns Spearman's coefficient of rank correlation, -1 to 1; equal values share the mean of
/// their ranks. Returns none where there are fewer than two values, or all values of one side are
/// equal.
///
/// # Panics
/// Panics when the lengths differ.
pub fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    assert_eq!(a.len(), b.len(), "one value of each");
    if a.len() < 2 {
        return None;
    }
    let (a, b) = (ranks(a), ranks(b));
    let (mean_a, mean_b) = (mean(&a), mean(&b));
    let sum = |f: &dyn Fn(f64, f64) -> f64| {
        let pairs = a.iter().zip(&b);
        pairs.map(|(a, b)| f(a - mean_a, b - mean_b)).sum::<f64>()
    };
    let (both, of_a, of_b) = (sum(&|a, b| a * b), sum(&|a, _| a * a), sum(&|_, b| b * b));
    (of_a > 0.0 && of_b > 0.0).then(|| both / (of_a * of_b).sqrt())
}

/// Returns the rank of each value; the least has rank 1.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let less = values.iter().filter(|other| *other < value).count();
        let same = values.iter().filter(|other| *other == value).count();
        less as f64 + (same as f64 + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

/// A change, in percent of the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delta {
    /// The change of the means; not finite where only the baseline is 0.
    pub pct: f64,
    /// Half the width of its 95 % confidence interval, in percentage points; none where there are
    /// fewer than two repetitions, and none where only the baseline is 0.
    pub ci95_pct: Option<f64>,
}

impl Delta {
    /// Returns that nothing has changed in any of `n` repetitions.
    pub(crate) fn none(n: usize) -> Delta {
        Delta { pct: 0.0, ci95_pct: (n >= 2).then_some(0.0) }
    }
}

/// Returns the change from `baseline` to `patched`, whose `i`th values share a seed.
///
/// The interval is that of a ratio of paired means by the delta method: repetition `i` leaves
/// `(p_i - r b_i) / mean(b)` where `r` is the ratio of the means, so what a seed does to both
/// arms alike cancels.
///
/// # Panics
/// Panics when the lengths differ or are 0.
pub fn delta(baseline: &[f64], patched: &[f64]) -> Delta {
    assert_eq!(baseline.len(), patched.len(), "arms are compared seed by seed");
    if [baseline, patched].concat().iter().all(|value| *value == 0.0) {
        return Delta::none(baseline.len());
    }
    let base = mean(baseline);
    let ratio = mean(patched) / base;
    let left: Vec<f64> =
        baseline.iter().zip(patched).map(|(b, p)| 100.0 * (p - ratio * b) / base).collect();
    Delta { pct: 100.0 * (ratio - 1.0), ci95_pct: ci95(&left).filter(|half| half.is_finite()) }
}

/// A sample of which only its mean and the mean's interval are left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub mean: f64,
    /// Half the width of the mean's interval, as [`ci95`] returns it.
    pub ci95: Option<f64>,
    /// The number of values.
    pub n: usize,
}

impl Sample {
    /// Returns the mean's standard error; none for fewer than two values.
    fn error(&self) -> Option<f64> {
        let half = self.ci95.filter(|_| self.n >= 2)?;
        Some(half / t95(self.n - 1))
    }
}

/// Returns the change from one sample to another that was drawn independently of it.
///
/// The interval is that of a ratio of means by the delta method. The spreads need not be equal, so
/// the degrees of freedom are those of Welch and Satterthwaite.
pub(crate) fn welch(old: Sample, new: Sample) -> Delta {
    if old.mean == 0.0 && new.mean == 0.0 {
        return Delta::none(old.n.min(new.n));
    }
    let ratio = new.mean / old.mean;
    let half = || {
        let (of_old, of_new) = ((ratio * old.error()?).powi(2), new.error()?.powi(2));
        let both = of_old + of_new;
        if both == 0.0 {
            return Some(0.0);
        }
        let each = of_old.powi(2) / (old.n - 1) as f64 + of_new.powi(2) / (new.n - 1) as f64;
        let freedom = both.powi(2) / each;
        Some(100.0 * t95_between(freedom) * both.sqrt() / old.mean.abs())
    };
    Delta { pct: 100.0 * (ratio - 1.0), ci95_pct: half().filter(|half| half.is_finite()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn welch_uses_both_spreads() {
        let sample =
            |values: &[f64]| Sample { mean: mean(values), ci95: ci95(values), n: values.len() };
        let (a, b) = (sample(&[98.0, 100.0, 102.0]), sample(&[105.0, 110.0, 115.0]));
        let found = welch(a, b);
        assert!((found.pct - 10.0).abs() < 1e-9);
        // Errors are 1.1 * 2 / sqrt 3 and 5 / sqrt 3, so freedom is 29.84^2 / (4.84^2 + 25^2) * 2.
        let freedom = 29.84f64.powi(2) / (4.84f64.powi(2) + 625.0) * 2.0;
        let half = t95_between(freedom) * (29.84f64 / 3.0).sqrt();
        assert!((found.ci95_pct.unwrap() - half).abs() < 1e-9, "{found:?}");
        let one = sample(&[1.0]);
        assert_eq!(welch(one, b).ci95_pct, None);
        let still = sample(&[2.0, 2.0]);
        assert_eq!(welch(still, still), Delta::none(2));
        let zero = sample(&[0.0, 0.0]);
        assert_eq!(welch(zero, zero), Delta::none(2));
        assert_eq!(welch(zero, still).ci95_pct, None);
    }

    /// The examples are worked out by hand: 1 - 6 Σd²/(n (n² - 1)) where there are no ties.
    #[test]
    fn spearman_compares_orders_and_nothing_else() {
        assert_eq!(spearman(&[1.0, 2.0, 9.0], &[10.0, 20.0, 21.0]), Some(1.0));
        assert_eq!(spearman(&[1.0, 2.0, 9.0], &[3.0, 2.0, 1.0]), Some(-1.0));
        // The ranks differ by 1, 1, 0, 0.
        let found = spearman(&[1.0, 2.0, 3.0, 4.0], &[2.0, 1.0, 3.0, 4.0]).unwrap();
        assert!((found - 0.8).abs() < 1e-12, "{found}");
        // The ranks are 1.5, 1.5, 3 against 1, 2, 3: 1.5 / sqrt(1.5 * 2).
        let found = spearman(&[5.0, 5.0, 6.0], &[1.0, 2.0, 3.0]).unwrap();
        assert!((found - 0.75f64.sqrt()).abs() < 1e-12, "{found}");
        assert_eq!(spearman(&[1.0, 1.0], &[1.0, 2.0]), None);
        assert_eq!(spearman(&[1.0], &[1.0]), None);
    }

    #[test]
    fn quantiles_are_the_printed_ones() {
        let table = [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (4, 2.776),
            (5, 2.571),
            (6, 2.447),
            (7, 2.365),
            (8, 2.306),
            (9, 2.262),
            (10, 2.228),
            (14, 2.145),
            (19, 2.093),
            (20, 2.086),
            (29, 2.045),
            (30, 2.042),
            (60, 2.000),
            (120, 1.980),
            (100_000, 1.960),
        ];
        for (freedom, printed) in table {
            let t = t95(freedom);
            assert!((t - printed).abs() < 6e-4, "{freedom} degrees: {t}, printed {printed}");
        }
    }

    #[test]
    fn the_interval_of_a_mean_is_students() {
        // The figure is worked out by hand: mean 3, deviation 1.5811, t(4) 2.7764, so 2.7764 *
        // 1.5811 / sqrt 5.
        let half = ci95(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((half - 1.9632).abs() < 1e-3, "{half}");
        assert_eq!(ci95(&[1.0]), None);
    }

    #[test]
    fn what_a_seed_does_to_both_arms_cancels() {
        let delta = delta(&[100.0, 150.0, 80.0], &[110.0, 165.0, 88.0]);
        assert!((delta.pct - 10.0).abs() < 1e-9);
        assert!(delta.ci95_pct.unwrap() < 1e-9);
    }

    #[test]
    fn a_change_from_nothing_has_neither_percentage_nor_interval() {
        let delta = delta(&[0.0; 3], &[1.0, 2.0, 3.0]);
        assert!(!delta.pct.is_finite());
        assert_eq!(delta.ci95_pct, None);
    }

    #[test]
    fn nothing_in_both_arms_is_no_change() {
        for (n, ci95_pct) in [(1, None), (3, Some(0.0))] {
            let nothing = vec![0.0; n];
            let expected = Delta { pct: 0.0, ci95_pct };
            assert_eq!(delta(&nothing, &nothing), expected);
        }
    }

    #[test]
    fn what_a_seed_does_to_one_arm_widens_the_interval() {
        let delta = delta(&[100.0, 100.0, 100.0], &[90.0, 110.0, 130.0]);
        assert!((delta.pct - 10.0).abs() < 1e-9);
        // The deviation is 20 and t(2) is 4.3027, so the figure is 4.3027 * 20 / sqrt 3.
        assert!((delta.ci95_pct.unwrap() - 49.68).abs() < 0.01);
    }
}

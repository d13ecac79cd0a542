// SPDX-License-Identifier: GPL-2.0-or-later
//! The statistics that a row of a table can show of the iterations of one workload: their mean, how
//! far they scatter, the least and the greatest, and percentiles.

use std::fmt;
use std::str::FromStr;

use crate::bootstrap::bootstrap;
use crate::stats::{Delta, delta, deviation, mean};

/// A number that stands for many iterations. It is computed as pandas' `describe()` computes it,
/// from which the published tables come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// The arithmetic mean.
    Mean,
    /// The standard deviation of a sample: the sum of squares is divided by one less than the
    /// number of iterations.
    Std,
    /// The least value.
    Min,
    /// The value that so many percent of the iterations, above 0 and below 100, lie at or under;
    /// between two neighbours the value lies on the line between them.
    Percentile(f64),
    /// The greatest value.
    Max,
}

/// The statistics that the published tables have, in their order.
pub const DESCRIBE: [Statistic; 7] = [
    Statistic::Mean,
    Statistic::Std,
    Statistic::Min,
    Statistic::Percentile(50.0),
    Statistic::Percentile(75.0),
    Statistic::Percentile(99.0),
    Statistic::Max,
];

impl Statistic {
    /// Returns the smallest number of iterations for which the statistic is defined.
    pub fn least(self) -> u32 {
        match self {
            Statistic::Std => 2,
            _ => 1,
        }
    }

    /// Returns the statistic's value over `iterations`, in their unit; the order of the iterations
    /// doesn't matter.
    ///
    /// # Panics
    /// Panics when there are fewer iterations than [`Statistic::least`].
    pub fn of(self, iterations: &[f64]) -> f64 {
        assert!(
            iterations.len() >= self.least() as usize,
            "{self} of {} iterations",
            iterations.len()
        );
        if iterations.iter().any(|value| value.is_nan()) {
            return f64::NAN;
        }
        match self {
            Statistic::Mean => mean(iterations),
            Statistic::Std => deviation(iterations),
            Statistic::Min => iterations.iter().copied().fold(f64::INFINITY, f64::min),
            Statistic::Max => iterations.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Statistic::Percentile(percent) => {
                let mut sorted = iterations.to_vec();
                sorted.sort_unstable_by(f64::total_cmp);
                percentile(&sorted, percent)
            }
        }
    }

    /// Returns the statistic's change from `baseline` to `patched`, whose `i`th iterations share a
    /// seed. The interval is Student's for the mean and a bootstrap's, whose draws come from
    /// `seed`, for the others. The change is not finite where only the statistic's value over
    /// `baseline` is 0; where both are, nothing has changed, and nothing tells how surely.
    ///
    /// # Panics
    /// Panics when the lengths differ or are less than [`Statistic::least`].
    pub fn change(self, baseline: &[f64], patched: &[f64], seed: u64) -> Delta {
        match self {
            Statistic::Mean => delta(baseline, patched),
            _ if self.of(baseline) == 0.0 && self.of(patched) == 0.0 => Delta::none(1),
            _ => bootstrap(baseline, patched, seed, |values| self.of(values)),
        }
    }
}

/// Returns the value that `percent` of `sorted`, which is not empty, lie at or under.
pub(crate) fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let at = (sorted.len() - 1) as f64 * percent / 100.0;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Statistic::Mean => f.write_str("mean"),
            Statistic::Std => f.write_str("std"),
            Statistic::Min => f.write_str("min"),
            Statistic::Percentile(percent) => write!(f, "{percent}th"),
            Statistic::Max => f.write_str("max"),
        }
    }
}

/// The error for a name that is no statistic's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownStatistic(String);

impl fmt::Display for UnknownStatistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no statistic `{}`", self.0)
    }
}

impl std::error::Error for UnknownStatistic {}

impl FromStr for Statistic {
    type Err = UnknownStatistic;

    fn from_str(name: &str) -> Result<Statistic, UnknownStatistic> {
        let unknown = || UnknownStatistic(name.to_string());
        match name {
            "mean" => Ok(Statistic::Mean),
            "std" => Ok(Statistic::Std),
            "min" => Ok(Statistic::Min),
            "max" => Ok(Statistic::Max),
            _ => {
                let digits = name.strip_suffix("th").ok_or_else(unknown)?;
                let plain = |c: char| c.is_ascii_digit() || c == '.';
                let percent: f64 = digits.parse().map_err(|_| unknown())?;
                if digits.chars().all(plain) && percent > 0.0 && percent < 100.0 {
                    Ok(Statistic::Percentile(percent))
                } else {
                    Err(unknown())
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn described(iterations: &[f64]) -> Vec<f64> {
        DESCRIBE.iter().map(|s| s.of(iterations)).collect()
    }

    /// The figures are worked out by hand: the squares of 1.8, 0.8, 0.2, 1.2 and 1.2 sum to 6.8,
    /// and a quarter of that has the root 1.3038; 99 % of the way from the first to the fifth is
    /// 0.96 past the fourth.
    #[test]
    fn five_iterations_are_described_as_by_hand() {
        let found = described(&[7.0, 4.0, 5.0, 7.0, 6.0]);
        let expected = [5.8, 1.303_840, 4.0, 6.0, 7.0, 7.0, 7.0];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
        }
    }

    /// The 99th percentiles of 100 iterations in the published tables lie a hundredth of the way
    /// from the 99th value to the greatest: 15749.29 is 15748 and a hundredth of 129 more.
    #[test]
    fn the_99th_of_a_hundred_is_past_the_99th_value_by_a_hundredth() {
        let mut iterations = vec![7186.0; 98];
        iterations.extend([15877.0, 15748.0]);
        let found = Statistic::Percentile(99.0).of(&iterations);
        assert!((found - 15749.29).abs() < 1e-6, "{found}");
    }

    #[test]
    fn names_read_back_and_others_are_refused() {
        for name in ["mean", "std", "min", "50th", "75th", "99th", "99.9th", "max"] {
            let statistic: Statistic = name.parse().unwrap();
            assert_eq!(statistic.to_string(), name);
        }
        for name in ["", "th", "median", "0th", "100th", "-5th", "+5th", "1e1th", "nanth", "50%"] {
            assert!(name.parse::<Statistic>().is_err(), "{name}");
        }
    }

    proptest! {
        /// The test states linear interpolation in another way: a percentile lies where the polygon
        /// through the sorted values, spread evenly from 0 to 100, stands.
        #[test]
        fn percentiles_are_those_of_a_naive_sort(
            iterations in prop::collection::vec(-1e6..1e6f64, 1..60),
            percent in 0.1..99.9f64,
        ) {
            let mut sorted: Vec<f64> = Vec::new();
            for value in &iterations {
                let at = sorted.iter().take_while(|other| *other <= value).count();
                sorted.insert(at, *value);
            }
            let found = Statistic::Percentile(percent).of(&iterations);
            let step = 100.0 / (sorted.len() as f64 - 1.0).max(1.0);
            let naive: f64 = sorted
                .iter()
                .enumerate()
                .map(|(i, value)| {
                    let away = (percent - i as f64 * step).abs() / step;
                    if sorted.len() == 1 { *value } else { value * (1.0 - away).max(0.0) }
                })
                .sum();
            prop_assert!((found - naive).abs() < 1e-6 * (1.0 + naive.abs()), "{found} {naive}");
        }

        #[test]
        fn a_table_is_in_order_and_no_matter_of_the_order(
            mut iterations in prop::collection::vec(0.0..1e6f64, 2..60),
        ) {
            let found = described(&iterations);
            let (mean, std) = (found[0], found[1]);
            prop_assert!(found[2..].is_sorted(), "{found:?}");
            prop_assert!(found[2] <= mean + 1e-6 && mean <= found[6] + 1e-6);
            prop_assert!(std >= 0.0 && std <= found[6] - found[2] + 1e-6);
            iterations.reverse();
            for (a, b) in found.iter().zip(described(&iterations)) {
                prop_assert!((a - b).abs() <= 1e-9 * (1.0 + a.abs()));
            }
        }
    }
}

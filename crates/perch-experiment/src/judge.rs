// SPDX-License-Identifier: GPL-2.0-or-later
//! The judge tells whether a simulated change, with its interval, bears out a published one.
//!
//! A point estimate alone decides nothing: of an interval that reaches over the edge of the
//! tolerance either side may hold the truth, and more repetitions tell which.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::published::Published;
use crate::stats::Delta;

/// A simulated change may miss a published one by this many percentage points. Postings of one
/// series on one machine differ by about as much: docs/experiments.md has the figures.
const TOLERANCE_PP: f64 = 3.0;
/// The direction of a change counts where the published change is larger than this, in percent:
/// below it the published tables' own noise decides the direction.
const DIRECTION_PCT: f64 = 3.0;

/// The answer of a simulation to a published change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The whole interval lies where the published change allows.
    Agrees,
    /// The whole interval lies elsewhere.
    Disagrees,
    /// The interval reaches over the edge, or there is none because the repetitions are too few.
    #[default]
    Undecided,
}

impl Verdict {
    /// Returns the verdict of two rules of which either suffices.
    pub(crate) fn or(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::Agrees, _) | (_, Verdict::Agrees) => Verdict::Agrees,
            (Verdict::Disagrees, Verdict::Disagrees) => Verdict::Disagrees,
            _ => Verdict::Undecided,
        }
    }

    /// Returns the name that tables and JSON use.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Agrees => "agrees",
            Verdict::Disagrees => "disagrees",
            Verdict::Undecided => "undecided",
        }
    }
}

/// The changes that count as the published one, in percent of the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tolerance {
    /// The least of them.
    pub low_pct: f64,
    /// The greatest of them.
    pub high_pct: f64,
}

impl Tolerance {
    /// Returns the changes that lie as near to the published one as measurements of it lie to each
    /// other: to either side twice the published standard deviation, at least 3 percentage points;
    /// where other postings of the series have the cell, also everything from 3 points below the
    /// least posting to 3 points above the greatest.
    pub fn of(published: &Published) -> Tolerance {
        let deviations = published.sd_pct.map_or(0.0, |sd| 2.0 * sd);
        let own = TOLERANCE_PP.max(deviations);
        let mut tolerance =
            Tolerance { low_pct: published.delta_pct - own, high_pct: published.delta_pct + own };
        for repeat in &published.repeats {
            tolerance.low_pct = tolerance.low_pct.min(repeat.delta_pct - TOLERANCE_PP);
            tolerance.high_pct = tolerance.high_pct.max(repeat.delta_pct + TOLERANCE_PP);
        }
        tolerance
    }

    /// Returns true for a change that counts as the published one.
    pub fn has(&self, pct: f64) -> bool {
        (self.low_pct..=self.high_pct).contains(&pct)
    }

    /// Judges a change.
    pub(crate) fn judge(&self, change: Delta) -> Verdict {
        judge(change.pct, change.ci95_pct, self.low_pct, self.high_pct)
    }
}

/// Judges `value`, which is known to `half` on either side, by whether it lies from `low` to `high`.
pub(crate) fn judge(value: f64, half: Option<f64>, low: f64, high: f64) -> Verdict {
    let Some(half) = half.filter(|half| half.is_finite() && value.is_finite()) else {
        return Verdict::Undecided;
    };
    if low <= value - half && value + half <= high {
        Verdict::Agrees
    } else if value + half < low || high < value - half {
        Verdict::Disagrees
    } else {
        Verdict::Undecided
    }
}

/// Judges the direction of a change by that of the published one; none where the published change is
/// too small to have one. No change at all is another direction than either.
pub(crate) fn direction(published_pct: f64, change: Delta) -> Option<Verdict> {
    if published_pct.abs() <= DIRECTION_PCT {
        return None;
    }
    let Delta { pct, ci95_pct } = change;
    let Some(half) = ci95_pct.filter(|half| half.is_finite() && pct.is_finite()) else {
        return Some(Verdict::Undecided);
    };
    let along = pct * published_pct.signum();
    Some(match (along - half > 0.0, along + half <= 0.0) {
        (true, _) => Verdict::Agrees,
        (_, true) => Verdict::Disagrees,
        _ => Verdict::Undecided,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::Repeat;
    use proptest::prelude::*;

    fn published(delta_pct: f64, sd_pct: Option<f64>, repeats: &[f64]) -> Published {
        let repeat = |&delta_pct: &f64| Repeat { posting: "v8".to_string(), delta_pct };
        Published {
            baseline: 100.0,
            patched: None,
            delta_pct,
            sd_pct,
            repeats: repeats.iter().map(repeat).collect(),
        }
    }

    fn change(pct: f64, half: f64) -> Delta {
        Delta { pct, ci95_pct: Some(half) }
    }

    #[test]
    fn the_tolerance_is_three_points_or_two_deviations_or_the_postings_span() {
        let of = |sd, repeats: &[f64]| {
            let found = Tolerance::of(&published(10.0, sd, repeats));
            (found.low_pct, found.high_pct)
        };
        assert_eq!(of(None, &[]), (7.0, 13.0));
        assert_eq!(of(Some(1.0), &[]), (7.0, 13.0));
        assert_eq!(of(Some(4.0), &[]), (2.0, 18.0));
        assert_eq!(of(None, &[24.0]), (7.0, 27.0));
        assert_eq!(of(None, &[9.0, 5.0]), (2.0, 13.0));
        assert_eq!(of(Some(4.0), &[5.5]), (2.0, 18.0));
    }

    /// The issue's own example: 11.7 ± 26.7 beside a published 10 decides nothing, though 11.7 is near.
    #[test]
    fn an_interval_decides_only_as_a_whole() {
        let tolerance = Tolerance::of(&published(10.0, None, &[]));
        for (pct, half, verdict) in [
            (11.7, 26.7, Verdict::Undecided),
            (11.7, 1.3, Verdict::Agrees),
            (11.7, 1.4, Verdict::Undecided),
            (14.0, 0.9, Verdict::Disagrees),
            (14.0, 1.0, Verdict::Undecided),
            (f64::NAN, 1.0, Verdict::Undecided),
            (10.0, f64::NAN, Verdict::Undecided),
        ] {
            assert_eq!(tolerance.judge(change(pct, half)), verdict, "{pct} ± {half}");
        }
        let alone = Delta { pct: 10.0, ci95_pct: None };
        assert_eq!(tolerance.judge(alone), Verdict::Undecided);
    }

    #[test]
    fn a_direction_is_that_of_the_whole_interval() {
        for (published, pct, half, verdict) in [
            (3.0, 5.0, 1.0, None),
            (3.1, 5.0, 1.0, Some(Verdict::Agrees)),
            (-3.1, 5.0, 1.0, Some(Verdict::Disagrees)),
            (-3.1, -5.0, 6.0, Some(Verdict::Undecided)),
            // The arms did the same, which is no change in the published direction.
            (20.0, 0.0, 0.0, Some(Verdict::Disagrees)),
        ] {
            assert_eq!(direction(published, change(pct, half)), verdict);
        }
    }

    proptest! {
        /// A narrower interval around the same change never takes a verdict back.
        #[test]
        fn a_narrower_interval_confirms(
            pct in -50.0..50.0f64, half in 0.0..30.0f64, part in 0.0..1.0f64,
            target in -50.0..50.0f64,
        ) {
            let tolerance = Tolerance::of(&published(target, None, &[]));
            let (wide, narrow) = (change(pct, half), change(pct, half * part));
            if tolerance.judge(wide) != Verdict::Undecided {
                prop_assert_eq!(tolerance.judge(narrow), tolerance.judge(wide));
            }
            if direction(target, wide).is_some_and(|verdict| verdict != Verdict::Undecided) {
                prop_assert_eq!(direction(target, narrow), direction(target, wide));
            }
            let verdict = tolerance.judge(change(pct, 0.0));
            prop_assert_eq!(verdict == Verdict::Agrees, tolerance.has(pct));
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! What "settled" means, for everybody who shows a figure or counts one.

use std::fmt;

use serde::Serialize;

use super::Comparison;
use super::plan::Window;
use super::scoring::ArmScore;

/// The reason why time alone may still change a score.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unsettled {
    /// The score changed with time while it was measured, until so many milliseconds after the
    /// beginning; at half of the measured time it may have gone on.
    Moves(f64),
    /// The warm-up ended before the balancer needs to have spread the tasks, which takes so many
    /// milliseconds: a score can stand still for as long, and move then.
    Early(f64),
    /// The measured time is shorter than so many milliseconds, in which the balancer spreads the
    /// tasks. Whatever is slower than the window looks steady in it.
    ///
    /// A warm-up alone is not enough, because one pass moves few tasks. On a Juno, whose period is
    /// 96 ms, Linux takes a second to spread six threads of sysbench over six CPUs. Measured for 24 ms
    /// after 96, capacity-aware wake-up gained 381 ± 194 %; for 96 ms, 171 ± 245 %; in the long run,
    /// nothing.
    Short(f64),
}

impl Unsettled {
    /// Returns the reason why a score is not settled that was measured in `window` and changed with
    /// time until `transient_ms`; none where it is settled. A workload that starts and stops its
    /// clock itself has no window: how it begins is a part of what it measures.
    pub fn of(window: Option<&Window>, transient_ms: Option<f64>) -> Option<Unsettled> {
        let window = window?;
        if let Some(until_ms) = transient_ms {
            return Some(Unsettled::Moves(until_ms));
        }
        if !window.is_balanced() {
            return Some(Unsettled::Early(window.balance_ms));
        }
        let is_short = window.measure_ms < window.balance_ms;
        is_short.then_some(Unsettled::Short(window.balance_ms))
    }
}

impl fmt::Display for Unsettled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsettled::Moves(ms) => write!(f, "still changed at {ms:.0} ms"),
            Unsettled::Early(ms) => write!(f, "warmed up for less than {ms:.0} ms"),
            Unsettled::Short(ms) => write!(f, "measured for less than {ms:.0} ms"),
        }
    }
}

impl Comparison {
    /// Returns the reason why the score of one of its arms is not settled; none where it is.
    pub fn unsettled(&self, score: &ArmScore) -> Option<Unsettled> {
        Unsettled::of(self.window.as_ref(), score.transient_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(warmup_ms: f64, measure_ms: f64) -> Window {
        Window { warmup_ms, measure_ms, balance_ms: 2048.0, effort: None }
    }

    #[test]
    fn score_is_settled_after_the_balancers_period_in_a_window_that_would_show_a_change() {
        let of = |warmup_ms, measure_ms, transient_ms| {
            Unsettled::of(Some(&window(warmup_ms, measure_ms)), transient_ms)
        };
        assert_eq!(of(2048.0, 2048.0, None), None);
        assert_eq!(of(20_000.0, 20_000.0, None), None);
        // The league's window of old: the kernel spread schbench over an EPYC's CPUs until 0.7 s.
        assert_eq!(of(500.0, 100.0, None), Some(Unsettled::Early(2048.0)));
        assert_eq!(of(2047.0, 4000.0, None), Some(Unsettled::Early(2048.0)));
        let short = Some(Unsettled::Short(2048.0));
        assert_eq!(of(20_000.0, 2047.0, None), short);
        // What moves is not settled, however long it was measured.
        let moves = Some(Unsettled::Moves(25_000.0));
        assert_eq!(of(20_000.0, 20_000.0, Some(25_000.0)), moves);
    }

    #[test]
    fn workload_that_starts_its_own_clock_is_settled() {
        assert_eq!(Unsettled::of(None, None), None);
    }
}

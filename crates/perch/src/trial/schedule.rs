// SPDX-License-Identifier: GPL-2.0-or-later
//! Which scheduler has which turn, and for how long.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::{BadValue, with_unit};

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The kernel's own scheduler.
    Stock,
    /// perch.
    Perch,
}

impl Side {
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Side::Stock => "stock",
            Side::Perch => "perch",
        }
    }
}

/// The turns of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Pairs of neighbouring turns, one of each scheduler; at least one.
    pub pairs: usize,
    /// The length of a turn.
    pub turn: Duration,
    /// The part at a turn's begin that is not measured; shorter than a turn.
    pub settle: Duration,
}

/// The part of a turn that settles where the user says nothing.
const SETTLE_PART: u32 = 10;

impl Schedule {
    /// As many pairs of turns as fit into `total`.
    ///
    /// # Errors
    /// Words for the user, where no pair fits or nothing of a turn is left to be measured.
    pub fn new(
        total: Duration,
        turn: Duration,
        settle: Option<Duration>,
    ) -> Result<Schedule, String> {
        let settle = settle.unwrap_or(turn / SETTLE_PART);
        if settle >= turn {
            return Err(format!(
                "--settle {settle:?}: expected less than a turn, which is {turn:?} (--every)"
            ));
        }
        let pairs = total.as_nanos() / (2 * turn).as_nanos();
        if pairs == 0 {
            return Err(format!(
                "--for {total:?}: expected at least two turns of {turn:?} (--every), one of each \
                 scheduler"
            ));
        }
        let pairs = usize::try_from(pairs).unwrap_or(usize::MAX);
        Ok(Schedule { pairs, turn, settle })
    }

    /// The number of turns.
    pub fn turns(&self) -> usize {
        2 * self.pairs
    }

    /// The part of a turn that is measured.
    pub fn measured(&self) -> Duration {
        self.turn - self.settle
    }

    /// Whose turn it is: stock, perch, perch, stock, and so on. Where a load grows or shrinks all the
    /// while, that favours stock in one pair and perch in the next.
    pub fn side(turn: usize) -> Side {
        match turn % 4 {
            0 | 3 => Side::Stock,
            _ => Side::Perch,
        }
    }
}

/// Reads a time from 100 ms to a week.
pub fn time(text: &str) -> Result<Duration, BadValue> {
    let units = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
    match with_unit(text, &units, "30s, 5m or 1h")? {
        Some(ms @ 100..=604_800_000) => Ok(Duration::from_millis(ms)),
        _ => Err("expected 100ms to 168h".into()),
    }
}

/// Reads a time of up to a week, which may be none.
pub fn time_or_none(text: &str) -> Result<Duration, BadValue> {
    match text {
        "0" | "0s" | "0ms" => Ok(Duration::ZERO),
        _ => time(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn an_hour_of_five_minutes_has_six_pairs() {
        let schedule = Schedule::new(seconds(3600), seconds(300), None).unwrap();
        assert_eq!((schedule.turns(), schedule.settle), (12, seconds(30)));
        assert_eq!(schedule.measured(), seconds(270));
    }

    #[test]
    fn turn_without_partner_is_left_out() {
        let schedule = Schedule::new(seconds(35), seconds(10), Some(Duration::ZERO)).unwrap();
        assert_eq!(schedule.turns(), 2);
    }

    #[test]
    fn each_pair_has_both_schedulers_and_each_comes_first_as_often() {
        let sides: Vec<Side> = (0..8).map(Schedule::side).collect();
        for pair in sides.chunks(2) {
            assert_ne!(pair[0], pair[1]);
        }
        let first = sides.iter().step_by(2).filter(|side| **side == Side::Stock);
        assert_eq!(first.count(), 2);
    }

    #[test]
    fn times_that_leave_nothing_to_measure_are_refused() {
        let refused = |total, turn, settle| Schedule::new(total, turn, settle).unwrap_err();
        assert!(refused(seconds(9), seconds(5), None).contains("at least two turns of 5s"));
        let words = refused(seconds(90), seconds(5), Some(seconds(5)));
        assert!(words.contains("less than a turn, which is 5s"), "{words}");
    }

    #[test]
    fn times_have_units_and_bounds() {
        assert_eq!(time("5m"), Ok(seconds(300)));
        assert_eq!(time("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(time_or_none("0s"), Ok(Duration::ZERO));
        for bad in ["", "5", "99ms", "0s", "169h", "-1s", "99999999999999999999h"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! What the turns of a trial come to: each measure's change, and whether a condition holds.

use perch_experiment::stats::{delta, mean};
use perch_experiment::{Change, Gate, GateError, GateOutcome, judge_gates};
use perch_report::percent;
use schemars::JsonSchema;
use serde::Serialize;

use super::schedule::Side;
use crate::arguments::BadValue;

/// Pairs of turns before a condition may end the trial: with two, the interval is as wide as 13 of
/// its standard errors on either side and still says little of a third.
pub const LEAST_PAIRS: usize = 3;

/// Something that is measured in each turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Its name, in tables and conditions.
    pub name: String,
    /// The unit of its values.
    pub unit: &'static str,
    /// True if the user is told of it while the trial goes on.
    pub told: bool,
}

/// A turn that is over.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "TurnFound")]
pub struct Turn {
    /// Whose it was.
    #[serde(rename = "scheduler")]
    pub side: Side,
    /// The values, in the order of `measures`; null where there was nothing to measure.
    pub values: Vec<Option<f64>>,
}

/// A measure over all pairs of turns.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// The measure's name.
    pub measure: String,
    /// The unit of the values: `us`, `/s`, `CPUs` or `%`.
    pub unit: &'static str,
    /// The mean over stock's turns of complete pairs; null without any.
    pub stock: Option<f64>,
    /// The mean over perch's turns of complete pairs; null without any.
    pub perch: Option<f64>,
    /// The change from stock to perch, in percent of stock; null where stock is 0 and perch is more, and
    /// without a pair.
    pub change_pct: Option<f64>,
    /// Half the width of the change's 95 % interval over the pairs, in percentage points; null for fewer
    /// than two pairs.
    pub ci95_pct: Option<f64>,
    /// Pairs of turns in which both have a value.
    pub pairs: usize,
}

/// Sums up the turns, of which each two neighbours are a pair; the last without a neighbour counts
/// nowhere.
pub fn rows(measures: &[Measure], turns: &[Turn]) -> Vec<Row> {
    let measures = measures.iter().enumerate();
    measures.map(|(at, measure)| row(at, measure, turns)).collect()
}

fn row(at: usize, measure: &Measure, turns: &[Turn]) -> Row {
    let value = |pair: &[Turn], side| {
        let turn = pair.iter().find(|turn| turn.side == side)?;
        turn.values.get(at).copied().flatten()
    };
    let pairs = turns.chunks_exact(2);
    let pairs =
        pairs.filter_map(|pair| Some((value(pair, Side::Stock)?, value(pair, Side::Perch)?)));
    let (stock, perch): (Vec<f64>, Vec<f64>) = pairs.unzip();
    let change = (!stock.is_empty()).then(|| delta(&stock, &perch));
    let mean_of = |values: &[f64]| (!values.is_empty()).then(|| mean(values));
    Row {
        measure: measure.name.clone(),
        unit: measure.unit,
        stock: mean_of(&stock),
        perch: mean_of(&perch),
        change_pct: change.map(|change| change.pct).filter(|pct| pct.is_finite()),
        ci95_pct: change.and_then(|change| change.ci95_pct),
        pairs: stock.len(),
    }
}

/// Reads a condition.
pub fn condition(text: &str) -> Result<Gate, BadValue> {
    let wrong = "expected MEASURE>PERCENT% or MEASURE<PERCENT%, for example 'p99_wait>+5%'";
    text.parse().map_err(|_| wrong.into())
}

/// Refuses a condition on something that is not measured.
///
/// # Errors
/// Words for the user, with what is measured.
pub fn check(conditions: &[Gate], measures: &[Measure]) -> Result<(), String> {
    let changes: Vec<Change> = measures.iter().map(|measure| change(&measure.name)).collect();
    match judge_gates(conditions, &changes) {
        Ok(_) => Ok(()),
        Err(GateError::UnknownScore { gate, score, .. }) => {
            let known: Vec<&str> = measures.iter().map(|m| m.name.as_str()).collect();
            Err(format!(
                "--revert-if '{gate}': there is no measure `{score}`; expected one of {}",
                known.join(", ")
            ))
        }
        Err(error) => Err(error.to_string()),
    }
}

fn change(measure: &str) -> Change<'_> {
    Change { arm: Side::Perch.name(), score: measure, pct: f64::NAN, ci95_pct: None, settled: true }
}

/// A condition that holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Held {
    /// The condition, as `--revert-if` takes it.
    pub condition: String,
    /// The figures behind it, in a line.
    pub because: String,
}

/// The first condition that holds: the whole interval of the change, over at least [`LEAST_PAIRS`]
/// pairs, lies beyond the bound.
pub fn held(conditions: &[Gate], rows: &[Row]) -> Option<Held> {
    let enough: Vec<&Row> = rows.iter().filter(|row| row.pairs >= LEAST_PAIRS).collect();
    let changes = enough.iter().map(|row| Change {
        pct: row.change_pct.unwrap_or(f64::NAN),
        ci95_pct: row.ci95_pct,
        ..change(&row.measure)
    });
    let changes: Vec<Change> = changes.collect();
    conditions.iter().find_map(|condition| {
        // It names a measure, as was checked; one that has too few pairs yet is left out here.
        let judged = judge_gates(std::slice::from_ref(condition), &changes).unwrap_or_default();
        let failed = judged
            .into_iter()
            .find(|one| one.outcome == GateOutcome::Failed)?;
        let pairs = enough.iter().find(|row| row.measure == failed.change.score)?.pairs;
        let (side, bound) = (condition.side(), condition.bound_pct());
        Some(Held {
            condition: condition.to_string(),
            because: format!(
                "{} changed by {} ±{:.2} points over {pairs} pairs of turns: the whole 95 % interval \
                 lies {side} {bound}%",
                failed.change.score,
                percent(failed.change.pct),
                failed.change.ci95_pct.unwrap_or(f64::NAN)
            ),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::schedule::Schedule;
    use super::*;

    fn measures(names: &[&str]) -> Vec<Measure> {
        let of = |name: &&str| Measure { name: (*name).to_string(), unit: "us", told: true };
        names.iter().map(of).collect()
    }

    /// Turns in the order of a schedule, with the values of one measure.
    fn turns(values: &[Option<f64>]) -> Vec<Turn> {
        let turns = values.iter().enumerate();
        let turn = |(at, value): (usize, &Option<f64>)| Turn {
            side: Schedule::side(at),
            values: vec![*value],
        };
        turns.map(turn).collect()
    }

    fn of(values: &[f64]) -> Row {
        let values: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
        rows(&measures(&["a"]), &turns(&values)).remove(0)
    }

    #[test]
    fn pairs_are_neighbours_whoever_comes_first() {
        // Stock has 100, 110, 90 and perch 20 % more of each: the load's own changes cancel.
        let row = of(&[100.0, 120.0, 132.0, 110.0, 90.0, 108.0]);
        assert_eq!((row.stock, row.perch, row.pairs), (Some(100.0), Some(120.0), 3));
        assert!((row.change_pct.unwrap() - 20.0).abs() < 1e-9);
        assert!(row.ci95_pct.unwrap() < 1e-9);
    }

    #[test]
    fn interval_is_that_of_paired_differences() {
        // perch leaves -10, +10 and 0 of 100: the deviation is 10, and t(2) is 4.3027.
        let row = of(&[100.0, 90.0, 110.0, 100.0, 100.0, 100.0]);
        assert!((row.ci95_pct.unwrap() - 4.3027 * 10.0 / 3f64.sqrt()).abs() < 1e-2);
    }

    #[test]
    fn turns_without_partner_or_value_count_nowhere() {
        let row = of(&[100.0, 110.0, 500.0]);
        assert_eq!((row.stock, row.perch, row.pairs), (Some(100.0), Some(110.0), 1));
        assert_eq!(row.ci95_pct, None);
        let gap = turns(&[Some(1.0), None, Some(3.0), Some(2.0)]);
        let row = rows(&measures(&["a"]), &gap).remove(0);
        assert_eq!((row.stock, row.perch, row.pairs), (Some(2.0), Some(3.0), 1));
        let none = rows(&measures(&["a"]), &[]).remove(0);
        assert_eq!((none.stock, none.change_pct, none.pairs), (None, None, 0));
        let zero = of(&[0.0, 1.0]);
        assert_eq!((zero.change_pct, zero.ci95_pct), (None, None));
    }

    #[test]
    fn condition_holds_when_whole_interval_of_three_pairs_lies_beyond() {
        let more = condition("a>+5%").unwrap();
        let less = condition("a<-5%").unwrap();
        let hold = |conditions: &[Gate], values: &[f64]| held(conditions, &[of(values)]);
        let three = [100.0, 120.0, 121.0, 100.0, 100.0, 119.0];
        let found = hold(&[less.clone(), more.clone()], &three).unwrap();
        assert_eq!(found.condition, "a>5%");
        assert!(found.because.starts_with("a changed by +20.00% ±"), "{found:?}");
        assert!(found.because.contains("3 pairs"), "{found:?}");
        // Two pairs are too few, however clear they are.
        assert_eq!(hold(std::slice::from_ref(&more), &three[..4]), None);
        // 4 % is not beyond, and 20 % with an interval as wide is not known to be.
        assert_eq!(
            hold(std::slice::from_ref(&more), &[100.0, 104.0, 104.0, 100.0, 100.0, 104.0]),
            None
        );
        assert_eq!(hold(&[more], &[100.0, 110.0, 150.0, 100.0, 100.0, 100.0]), None);
        let fewer = [100.0, 80.0, 81.0, 100.0, 100.0, 79.0];
        assert_eq!(hold(&[less], &fewer).unwrap().condition, "a<-5%");
    }

    #[test]
    fn condition_on_unknown_measure_lists_known_ones() {
        let known = measures(&["p50_wait", "p99_wait"]);
        let checked = |text: &str| check(&[condition(text).unwrap()], &known);
        assert_eq!(checked("p99_wait>5%"), Ok(()));
        assert_eq!(checked("*_wait>5%"), Ok(()));
        let words = checked("p95_wait>5%").unwrap_err();
        assert!(words.contains("`p95_wait`; expected one of p50_wait, p99_wait"), "{words}");
        let words = condition("p99_wait=5%").unwrap_err().to_string();
        assert!(words.contains("MEASURE>PERCENT%"), "{words}");
    }
}

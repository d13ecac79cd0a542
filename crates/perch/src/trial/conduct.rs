// SPDX-License-Identifier: GPL-2.0-or-later
//! The course of a trial: turn after turn, until all are over or something ends it. It knows no clock
//! and no kernel.

use perch_experiment::Gate;

use super::result::{Held, Measure, Row, Turn, held, rows};
use super::schedule::{Schedule, Side};
use crate::output::Failure;

/// The reason why a turn does not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// Somebody asks to stop.
    Stopped,
    /// It cannot go on.
    Failed(Failure),
}

impl From<Failure> for Interruption {
    fn from(failure: Failure) -> Interruption {
        Interruption::Failed(failure)
    }
}

/// Has the kernel schedule by this side for a turn, and returns each measure's value in it.
pub type Play<'a> = dyn FnMut(Side) -> Result<Vec<Option<f64>>, Interruption> + 'a;

/// Why a trial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// All turns are over.
    Finished,
    /// Somebody asked for it.
    Stopped,
    /// A condition holds.
    Held(Held),
    /// It could not go on.
    Failed(Failure),
}

/// Hears of each turn that is over: its number from 1, its values, and after each pair the rows so far.
pub type Tell<'a> = dyn FnMut(usize, &Turn, Option<&[Row]>) + 'a;

/// Carries out the turns.
pub fn conduct(
    schedule: &Schedule,
    (measures, conditions): (&[Measure], &[Gate]),
    play: &mut Play<'_>,
    tell: &mut Tell<'_>,
) -> (Vec<Turn>, End) {
    let mut turns: Vec<Turn> = Vec::new();
    while turns.len() < schedule.turns() {
        let side = Schedule::side(turns.len());
        match play(side) {
            Ok(values) => turns.push(Turn { side, values }),
            Err(Interruption::Stopped) => return (turns, End::Stopped),
            Err(Interruption::Failed(failure)) => return (turns, End::Failed(failure)),
        }
        let is_pair = turns.len() % 2 == 0;
        let rows = is_pair.then(|| rows(measures, &turns));
        if let Some(turn) = turns.last() {
            tell(turns.len(), turn, rows.as_deref());
        }
        if let Some(held) = rows.and_then(|rows| held(conditions, &rows)) {
            return (turns, End::Held(held));
        }
    }
    (turns, End::Finished)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::result::condition;
    use super::*;

    /// Conducts four pairs of turns with one value under stock and another under perch, of which some
    /// turn is interrupted; the number that were over, and the end.
    fn run(
        values: [f64; 2],
        interrupted: Option<(usize, Interruption)>,
        conditions: &[&str],
    ) -> (usize, End) {
        let second = Duration::from_secs(1);
        let schedule = Schedule::new(8 * second, second, None).unwrap();
        let measure = Measure { name: "a".to_string(), unit: "us", told: true };
        let conditions: Vec<Gate> =
            conditions.iter().map(|text| condition(text).unwrap()).collect();
        let (mut played, mut told) = (0, 0);
        let mut play = |side| {
            assert_eq!(side, Schedule::side(played));
            played += 1;
            match &interrupted {
                Some((at, why)) if at + 1 == played => Err(why.clone()),
                _ => Ok(vec![Some(values[usize::from(side == Side::Perch)])]),
            }
        };
        let mut tell = |number: usize, turn: &Turn, rows: Option<&[Row]>| {
            told += 1;
            assert_eq!((number, turn.side), (told, Schedule::side(told - 1)));
            assert_eq!(rows.is_some(), number % 2 == 0);
        };
        let judged = (&[measure][..], &conditions[..]);
        let (turns, end) = conduct(&schedule, judged, &mut play, &mut tell);
        assert_eq!(told, turns.len());
        (turns.len(), end)
    }

    #[test]
    fn condition_ends_the_trial_after_three_pairs() {
        assert_eq!(run([100.0, 120.0], None, &["a<-5%"]), (8, End::Finished));
        let (turns, end) = run([100.0, 120.0], None, &["a>+5%"]);
        assert_eq!(turns, 6);
        assert!(matches!(end, End::Held(held) if held.condition == "a>5%"));
    }

    #[test]
    fn turn_that_is_cut_off_does_not_count() {
        let stopped = Some((3, Interruption::Stopped));
        assert_eq!(run([1.0, 1.0], stopped, &[]), (3, End::Stopped));
        let ejected = Failure::run("ejected");
        let (turns, end) = run([1.0, 1.0], Some((1, ejected.clone().into())), &[]);
        assert_eq!((turns, end), (1, End::Failed(ejected)));
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The course of a trial: turn after turn, until all are over or something ends it. It knows no clock
//! and no kernel; a [`Stage`] has both.

use perch_experiment::Gate;

use super::result::{Held, Measure, Row, Turn, held, rows};
use super::schedule::{Schedule, Side};

/// The reason why a stage does not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// Somebody asks to stop.
    Stopped,
    /// It cannot: the exit code, and words for the user.
    Failed(u8, String),
}

/// The kernel and its clock.
pub trait Stage {
    /// Has the kernel schedule by this side, which may do so already.
    fn switch(&mut self, side: Side) -> Result<(), Interruption>;
    /// Lets the part of a turn pass that is not measured.
    fn settle(&mut self) -> Result<(), Interruption>;
    /// Lets the rest of the turn pass, and returns each measure's value in it.
    fn measure(&mut self) -> Result<Vec<Option<f64>>, Interruption>;
}

/// Why a trial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// All turns are over.
    Finished,
    /// Somebody asked for it.
    Stopped,
    /// A condition holds.
    Held(Held),
    /// It could not go on: the exit code, and words for the user.
    Failed(u8, String),
}

/// Hears of each turn that is over: its number from 1, its values, and after each pair the rows so far.
pub type Tell<'a> = dyn FnMut(usize, &Turn, Option<&[Row]>) + 'a;

/// Carries out the turns.
pub fn conduct(
    schedule: &Schedule,
    (measures, conditions): (&[Measure], &[Gate]),
    stage: &mut dyn Stage,
    tell: &mut Tell<'_>,
) -> (Vec<Turn>, End) {
    let mut turns: Vec<Turn> = Vec::new();
    while turns.len() < schedule.turns() {
        let side = Schedule::side(turns.len());
        match one(stage, side) {
            Ok(values) => turns.push(Turn { side, values }),
            Err(Interruption::Stopped) => return (turns, End::Stopped),
            Err(Interruption::Failed(code, words)) => return (turns, End::Failed(code, words)),
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

fn one(stage: &mut dyn Stage, side: Side) -> Result<Vec<Option<f64>>, Interruption> {
    stage.switch(side)?;
    stage.settle()?;
    stage.measure()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::result::condition;
    use super::*;

    /// A stage whose measure has one value under stock and another under perch, and that ends in some
    /// turn.
    struct Scripted {
        values: [f64; 2],
        ends: Option<(usize, Interruption)>,
        said: Vec<&'static str>,
        turns: usize,
    }

    impl Stage for Scripted {
        fn switch(&mut self, side: Side) -> Result<(), Interruption> {
            self.said.push(side.name());
            Ok(())
        }

        fn settle(&mut self) -> Result<(), Interruption> {
            self.said.push("settle");
            match &self.ends {
                Some((at, why)) if *at == self.turns => Err(why.clone()),
                _ => Ok(()),
            }
        }

        fn measure(&mut self) -> Result<Vec<Option<f64>>, Interruption> {
            self.said.push("measure");
            let side = Schedule::side(self.turns);
            self.turns += 1;
            Ok(vec![Some(self.values[usize::from(side == Side::Perch)])])
        }
    }

    /// Conducts four pairs of turns; the number that were over, the end, and what the stage was told.
    fn run(
        values: [f64; 2],
        ends: Option<(usize, Interruption)>,
        conditions: &[&str],
    ) -> (usize, End, Vec<&'static str>) {
        let second = Duration::from_secs(1);
        let schedule = Schedule::new(8 * second, second, None).unwrap();
        let measure = Measure { name: "a".to_string(), unit: "us", told: true };
        let conditions: Vec<Gate> =
            conditions.iter().map(|text| condition(text).unwrap()).collect();
        let mut stage = Scripted { values, ends, said: Vec::new(), turns: 0 };
        let mut told = 0;
        let (turns, end) =
            conduct(&schedule, (&[measure], &conditions), &mut stage, &mut |number, turn, rows| {
                told += 1;
                assert_eq!((number, turn.side), (told, Schedule::side(told - 1)));
                assert_eq!(rows.is_some(), number % 2 == 0);
            });
        assert_eq!(told, turns.len());
        (turns.len(), end, stage.said)
    }

    #[test]
    fn every_turn_switches_settles_and_measures() {
        let (turns, end, said) = run([100.0, 120.0], None, &["a<-5%"]);
        assert_eq!((turns, end), (8, End::Finished));
        let first = ["stock", "settle", "measure", "perch", "settle", "measure"];
        assert_eq!(said[..6], first);
        assert_eq!(said.len(), 24);
    }

    #[test]
    fn condition_ends_the_trial_after_three_pairs() {
        let (turns, end, _) = run([100.0, 120.0], None, &["a>+5%"]);
        assert_eq!(turns, 6);
        assert!(matches!(end, End::Held(held) if held.condition == "a>5%"));
    }

    #[test]
    fn turn_that_is_cut_off_does_not_count() {
        let (turns, end, _) = run([1.0, 1.0], Some((3, Interruption::Stopped)), &[]);
        assert_eq!((turns, end), (3, End::Stopped));
        let ejected = Interruption::Failed(1, "ejected".to_string());
        let (turns, end, said) = run([1.0, 1.0], Some((1, ejected)), &[]);
        assert_eq!((turns, end), (1, End::Failed(1, "ejected".to_string())));
        assert_eq!(said.last(), Some(&"settle"));
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Decisions by reason: beside each measurement's guest another one of the same seed runs the command
//! under `perch record`, and the model of the arm's kernel gives each wake-up its reason. The kernel
//! gives none. Recording makes wake-ups slower, so this guest has no scores.

use std::io::Write;

use perch_experiment::CountRow;
use perch_policy::Reason;
use perch_record::Outcome;

use super::arguments::Arguments;
use super::arm::Scheduler;
use super::kernels::refused;
use crate::output::Failure;
use crate::recording::Recording;

/// The recording, in a guest.
pub const FILE: &str = "/tmp/perch-decisions.perch";

/// The row of the wake-ups for which the kernel chose another CPU than its model. A patch that
/// changes where tasks go shows here, since the model is that of the kernel without it.
const UNLIKE: &str = "other than the model's choice";

/// The decisions of an arm, in one repetition or in all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decisions {
    /// Wake-ups for which the kernel chose as its model, by the model's reason.
    like: Vec<u64>,
    /// All other wake-ups of the fair class.
    unlike: u64,
    /// The time from the first wake-up to the last, nanoseconds of the guest. Sums of whole numbers do
    /// not depend on the order in which the guests end.
    span_ns: u64,
    /// Wake-ups that the recorder lost.
    lost: u64,
}

/// Refuses arms whose decisions another scheduler than the kernel's own makes, and guests in modelled
/// time. There two recordings of the same kernel and seed differed: the share of wake-ups to an idle
/// target was 24 % in one and 6 % in the other. Where clocks count instructions they are the same.
pub fn check(arguments: &Arguments) -> Result<(), Failure> {
    if !arguments.untimed {
        return Err(Failure::input(
            "--decisions takes guests whose clocks count instructions, since in modelled time two \
             recordings of one kernel are not alike; add --untimed, or leave --decisions out",
        ));
    }
    match arguments.arms.iter().find(|arm| arm.scheduler != Scheduler::Stock) {
        None => Ok(()),
        Some(arm) => Err(refused(
            arm,
            "--decisions records what the kernel's own scheduler decides, and this arm has another; \
             leave the arm or --decisions out",
        )),
    }
}

/// The words that run `command` and record its wake-ups.
pub fn recorded(command: Vec<String>) -> Vec<String> {
    let mut words = ["/bin/perch", "record", "-q", "-o", FILE, "--"].map(str::to_string).to_vec();
    words.extend(command);
    words
}

impl Decisions {
    /// Reads a recording.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Decisions, Failure> {
        let failed = |failure: Failure| failure.of("the recorded decisions");
        let wrong = |error: &dyn std::fmt::Display| failed(Failure::run(error.to_string()));
        let mut file = tempfile::NamedTempFile::new().map_err(|error| wrong(&error))?;
        file.write_all(bytes).map_err(|error| wrong(&error))?;
        let mut recording = Recording::open(file.path(), None, true).map_err(failed)?;
        let (topology, model) = (recording.topology.clone(), recording.model);
        // The guests of other measurements keep the host's other CPUs busy.
        let outcome = perch_record::replay(&mut recording.reader, &topology, model, None, 1);
        let outcome = outcome.map_err(|error| wrong(&error))?;
        let lost = recording.reader.footer().map_or(0, |footer| footer.dropped);
        Ok(Decisions::of(&outcome, lost))
    }

    fn of(outcome: &Outcome, lost: u64) -> Decisions {
        let stakes = outcome.model.by_reason.iter();
        let counts = stakes.map(|&[mut all, idle]| {
            all.add(&idle);
            (all.same(), all.differ)
        });
        let (like, unlike): (Vec<u64>, Vec<u64>) = counts.unzip();
        Decisions {
            like,
            unlike: unlike.iter().sum(),
            span_ns: outcome.span_ns.map_or(0, |(from, to)| to - from),
            lost,
        }
    }

    /// Adds the decisions of another repetition.
    pub fn add(&mut self, other: &Decisions) {
        self.like.resize(other.like.len(), 0);
        let like = self.like.iter_mut().zip(&other.like);
        like.for_each(|(sum, more)| *sum += more);
        self.unlike += other.unlike;
        self.span_ns += other.span_ns;
        self.lost += other.lost;
    }

    /// Words for the user about a recording that tells less than it should.
    pub fn doubt(&self) -> Option<String> {
        if self.like.iter().sum::<u64>() + self.unlike == 0 {
            return Some("its recording has no wake-up of the fair class".to_string());
        }
        let lost = self.lost;
        (lost > 0).then(|| format!("{lost} wake-ups are missing in the decisions by reason"))
    }

    fn per_second(&self, count: u64) -> f64 {
        match self.span_ns {
            0 => 0.0,
            span_ns => count as f64 * 1e9 / span_ns as f64,
        }
    }
}

/// Makes a row for each reason that occurred in any arm.
pub fn rows(arms: &[Decisions]) -> Vec<CountRow> {
    let count = |arm: &Decisions, reason: usize| arm.like.get(reason).copied().unwrap_or(0);
    let mut rows: Vec<CountRow> = Vec::new();
    let mut add = |name: &str, count: &dyn Fn(&Decisions) -> u64| {
        if arms.iter().any(|arm| count(arm) > 0) {
            rows.push(CountRow {
                name: name.to_string(),
                per_second: arms.iter().map(|arm| Some(arm.per_second(count(arm)))).collect(),
            });
        }
    };
    for (index, reason) in Reason::ALL.iter().enumerate() {
        add(reason.name(), &|arm| count(arm, index));
    }
    add(UNLIKE, &|arm| arm.unlike);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_unlike_the_models_have_a_row_of_their_own() {
        let mut outcome = Outcome::default();
        let idle = Reason::TargetIdle as usize;
        outcome.model.by_reason[idle][0].asked = 30;
        outcome.model.by_reason[idle][1].asked = 20;
        outcome.model.by_reason[idle][1].differ = 10;
        outcome.span_ns = Some((1_000_000_000, 3_000_000_000));
        let old = Decisions::of(&outcome, 0);
        assert_eq!(old.doubt(), None);
        let none = Decisions::of(&Outcome::default(), 0);
        assert!(none.doubt().unwrap().contains("no wake-up"));
        let mut twice = old.clone();
        twice.add(&old);
        assert_eq!(rows(&[twice]), rows(std::slice::from_ref(&old)));
        let found: Vec<(String, Vec<Option<f64>>)> =
            rows(&[old, none]).into_iter().map(|row| (row.name, row.per_second)).collect();
        let expected = [(Reason::TargetIdle.name(), 20.0), (UNLIKE, 5.0)];
        let expected = expected.map(|(name, rate)| (name.to_string(), vec![Some(rate), Some(0.0)]));
        assert_eq!(found, expected);
        assert!(Decisions::of(&outcome, 7).doubt().unwrap().contains("7 wake-ups"));
    }
}

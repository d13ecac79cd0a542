// SPDX-License-Identifier: GPL-2.0-or-later
//! What a trial found, for people and for programs.

use perch_report::{Align, Grid, figure, percent};
use schemars::JsonSchema;
use serde::Serialize;

use super::conduct::End;
use super::result::{Held, Measure, Row, Turn, rows};

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum How {
    /// All turns are over.
    Finished,
    /// Somebody stopped it.
    Stopped,
    /// A condition of `--revert-if` holds.
    Reverted,
    /// It could not go on: perch was ejected, for example.
    Failed,
}

/// Where and how a trial runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Circumstances {
    /// The version of perch.
    pub perch: &'static str,
    /// The machine.
    pub machine: String,
    /// Its CPUs that are online.
    pub cpus: usize,
    /// The kernel's version.
    pub kernel: String,
    /// What perch said that it schedules, with its modes; null if it was never loaded.
    pub scheduling: Option<String>,
    /// The cgroups for which perch was loaded and whose tasks were measured; empty for the whole
    /// machine.
    pub cgroups: Vec<String>,
    /// The length of a turn in s.
    pub turn_s: f64,
    /// The part at its begin that was not measured, in s.
    pub settle_s: f64,
    /// The number of turns that were planned.
    pub planned: usize,
}

/// A trial that is over. Whatever it says, the kernel is on its own scheduler again.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Report {
    #[serde(flatten)]
    at: Circumstances,
    /// How it ended.
    ended: How,
    /// Why it failed, in a line; null where it did not.
    failure: Option<String>,
    /// The condition that ended it; null without one.
    condition: Option<Held>,
    /// What was measured, over complete pairs of turns.
    measures: Vec<Row>,
    /// The turns that are over, two neighbours a pair.
    turns: Vec<Turn>,
}

impl Report {
    /// The report of these turns.
    pub fn new(at: Circumstances, measures: &[Measure], turns: Vec<Turn>, end: &End) -> Report {
        let (ended, failure, condition) = match end {
            End::Finished => (How::Finished, None, None),
            End::Stopped => (How::Stopped, None, None),
            End::Held(held) => (How::Reverted, None, Some(held.clone())),
            End::Failed(failure) => (How::Failed, Some(failure.message.clone()), None),
        };
        Report { at, ended, failure, condition, measures: rows(measures, &turns), turns }
    }

    /// The report for a person. `again` is the command that loads perch as the trial did.
    pub fn text(&self, again: &str) -> String {
        let at = &self.at;
        let mut out = format!("{} CPUs of {}, Linux {}\n", at.cpus, at.machine, at.kernel);
        if !at.cgroups.is_empty() {
            out += &format!("cgroups: {}\n", at.cgroups.join(", "));
        }
        if let Some(scheduling) = &at.scheduling {
            out += &format!("perch: {scheduling}\n");
        }
        out += &format!(
            "{} of {} turns of {} s, of which the first {} s are not measured\n\n{}\n",
            self.turns.len(),
            at.planned,
            at.turn_s,
            at.settle_s,
            self.table()
        );
        if self.turns.len() / 2 < 2 {
            out += "fewer than two pairs of turns: no change has an interval\n";
        }
        out += &self.ending(again);
        out
    }

    fn table(&self) -> String {
        let mut grid = Grid::new(&["measure", "unit"], &[]);
        grid.columns("mean of turns", &["stock", "perch"], Align::Right);
        grid.columns("", &["change", "±95%", "pairs"], Align::Right);
        let shown = |value: Option<f64>| value.map_or("-".to_string(), figure);
        for row in &self.measures {
            grid.row(vec![
                row.measure.clone(),
                row.unit.to_string(),
                shown(row.stock),
                shown(row.perch),
                row.change_pct.map_or("-".to_string(), percent),
                row.ci95_pct.map_or(String::new(), |half| format!("{half:.2}")),
                row.pairs.to_string(),
            ]);
        }
        grid.text()
    }

    /// How it ended, and what now.
    fn ending(&self, again: &str) -> String {
        let why = match (self.ended, &self.failure, &self.condition) {
            (How::Failed, Some(words), _) => format!("the trial failed: {words}\n"),
            (_, _, Some(held)) => {
                format!("--revert-if '{}' ended the trial: {}\n", held.condition, held.because)
            }
            (How::Stopped, ..) => "the trial was stopped\n".to_string(),
            _ => format!("to load perch for good: {again}\n"),
        };
        format!("the kernel is on its own scheduler\n{why}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::schedule::{Schedule, Side};
    use super::*;
    use crate::output::Failure;

    fn report(end: &End, turns: usize) -> Report {
        let at = Circumstances {
            perch: "0",
            machine: "Some CPU".to_string(),
            cpus: 8,
            kernel: "7.2.12".to_string(),
            scheduling: Some("8 CPUs: cluster=perch".to_string()),
            cgroups: vec!["/web".to_string()],
            turn_s: 300.0,
            settle_s: 30.0,
            planned: 4,
        };
        let measures = [("p99_wait", "us"), ("requests", "/s")].map(|(name, unit)| Measure {
            name: name.to_string(),
            unit,
            told: true,
        });
        let values = [[Some(80.0), Some(1000.0)], [Some(60.0), None]];
        let turn = |at| {
            let side = Schedule::side(at);
            Turn { side, values: values[usize::from(side == Side::Perch)].to_vec() }
        };
        Report::new(at, &measures, (0..turns).map(turn).collect(), end)
    }

    #[test]
    fn report_for_a_person_has_table_and_end() {
        insta::assert_snapshot!(report(&End::Finished, 4).text("sudo perch run"));
    }

    #[test]
    fn report_says_what_ended_the_trial() {
        let held = Held { condition: "p99_wait>5%".to_string(), because: "so it is".to_string() };
        let text = report(&End::Held(held), 4).text("");
        assert!(text.contains("--revert-if 'p99_wait>5%' ended the trial: so it is"), "{text}");
        let text = report(&End::Failed(Failure::run("ejected")), 1).text("");
        assert!(text.contains("the trial failed: ejected"), "{text}");
        assert!(text.contains("no change has an interval"), "{text}");
        assert!(report(&End::Stopped, 2).text("").contains("was stopped"));
    }
}

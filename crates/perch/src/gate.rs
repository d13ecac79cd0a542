// SPDX-License-Identifier: GPL-2.0-or-later
//! `--fail-if`: a yes or no for CI. docs/gates.md tells what a gate says.

use clap::Args;
use perch_experiment::{Change, Gate, GateError, GateOutcome, check_gates, judge_gates};
use perch_report::gate_words;

use crate::output::{Failure, say};

/// The options of commands that apply gates.
#[derive(Args, Clone, Debug)]
pub struct Gates {
    /// Exit with 3 where the whole 95 % interval of a score's change lies beyond a bound, for example
    /// 'throughput<-2%' or 'perch:wake-up latency>5%' for one arm; * in a score stands for any text; may
    /// be repeated
    #[arg(long = "fail-if", value_name = "[ARM:]SCORE<PERCENT%")]
    gates: Vec<Gate>,
}

/// Gates whose changes are still to come.
pub struct Pending<'a> {
    gates: &'a [Gate],
    quiet: bool,
}

impl From<GateError> for Failure {
    fn from(error: GateError) -> Failure {
        Failure::input(error.to_string())
    }
}

impl Gates {
    /// Refuses what can be refused before anything runs: gates on arms that are not there. `first` is
    /// the arm from which changes are measured, and `arms` are those that have changes.
    pub fn begin(
        &self,
        first: Option<&str>,
        arms: &[&str],
        repetitions: u32,
        quiet: bool,
    ) -> Result<Pending<'_>, Failure> {
        check_gates(&self.gates, first, arms, repetitions)?;
        Ok(Pending { gates: &self.gates, quiet })
    }
}

impl Pending<'_> {
    /// Judges the changes of scores, and says what each gate answers.
    ///
    /// # Errors
    /// A [`Failure::gate`] where a gate failed, and another where a gate names an unknown score.
    pub fn judge(self, changes: &[Change]) -> Result<(), Failure> {
        let judged = judge_gates(self.gates, changes)?;
        for one in &judged {
            if !self.quiet || one.outcome == GateOutcome::Failed {
                say(gate_words(one));
            }
        }
        let failed = judged.iter().filter(|one| one.outcome == GateOutcome::Failed);
        match failed.count() {
            0 => Ok(()),
            failed => {
                Err(Failure::gate(format!("{failed} of {} answers of gates failed", judged.len())))
            }
        }
    }
}

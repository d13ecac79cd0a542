// SPDX-License-Identifier: GPL-2.0-or-later
//! `--fail-if` and `--junit`: a yes or no for CI. docs/gates.md tells what a gate says.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use perch_experiment::{Change, Gate, GateError, GateOutcome, check_gates, judge_gates};
use perch_report::{TestCase, gate_case, gate_words, junit};

use crate::fresh::Asked;
use crate::output::{Failure, say};

/// The options of commands that apply gates.
#[derive(Args, Clone, Debug)]
pub struct Gates {
    /// Exit with 3 where the whole 95 % interval of a score's change lies beyond a bound, for example
    /// 'throughput<-2%' or 'perch:wake-up latency>5%' for one arm; * in a score stands for any text; may
    /// be repeated
    #[arg(long = "fail-if", value_name = "[ARM:]SCORE<PERCENT%")]
    gates: Vec<Gate>,
    /// Also write what the gates answer as JUnit XML: one test per gate, arm and score
    #[arg(long, value_name = "FILE", requires = "gates", value_hint = ValueHint::FilePath)]
    junit: Option<PathBuf>,
}

/// Gates whose changes are still to come.
pub struct Pending<'a> {
    gates: &'a [Gate],
    file: Asked<'a>,
    quiet: bool,
}

impl From<GateError> for Failure {
    fn from(error: GateError) -> Failure {
        Failure::input(error.to_string())
    }
}

impl Gates {
    /// Refuses what can be refused before anything runs: gates on arms that are not there, and a
    /// file that cannot be written. `first` is the arm from which changes are measured, and `arms`
    /// are those that have changes.
    pub fn begin(
        &self,
        first: Option<&str>,
        arms: &[&str],
        repetitions: u32,
        quiet: bool,
    ) -> Result<Pending<'_>, Failure> {
        check_gates(&self.gates, first, arms, repetitions)?;
        Ok(Pending { gates: &self.gates, file: Asked::begin(self.junit.as_deref())?, quiet })
    }
}

impl Pending<'_> {
    /// Judges the changes of `workload`'s scores, says what each gate answers and writes the file.
    ///
    /// # Errors
    /// A [`Failure::gate`] where a gate failed, and another where a gate names an unknown score or
    /// the file cannot be written.
    pub fn judge(self, workload: &str, changes: &[Change]) -> Result<(), Failure> {
        let judged = judge_gates(self.gates, changes)?;
        for one in &judged {
            if !self.quiet || one.outcome == GateOutcome::Failed {
                say(gate_words(one));
            }
        }
        let cases: Vec<TestCase> = judged.iter().map(|one| gate_case(workload, one)).collect();
        self.file.finish(&junit(workload, &cases))?;
        let failed = judged.iter().filter(|one| one.outcome == GateOutcome::Failed);
        match failed.count() {
            0 => Ok(()),
            failed => {
                Err(Failure::gate(format!("{failed} of {} answers of gates failed", judged.len())))
            }
        }
    }
}

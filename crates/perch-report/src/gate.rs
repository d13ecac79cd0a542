// SPDX-License-Identifier: GPL-2.0-or-later
//! The answers of gates in words.

use perch_experiment::{GateOutcome, Judged};

use crate::figure::percent;
use crate::settled::MARK;

/// Returns what a gate answers, in one line.
pub fn gate_words(judged: &Judged) -> String {
    let answer = match judged.outcome {
        GateOutcome::Passed => "passed",
        GateOutcome::Failed => "failed",
        GateOutcome::Undecided => "undecided",
    };
    format!("gate '{}' {answer}: {}", judged.gate, reason(judged))
}

/// Returns the figures behind an answer.
fn reason(judged: &Judged) -> String {
    let change = &judged.change;
    let who = format!("{} of {}", change.score, change.arm);
    let bound = format!("{}%", judged.gate.bound_pct());
    let Some(half) = change.ci95_pct.filter(|_| change.pct.is_finite()) else {
        let why = if change.pct.is_finite() {
            "has no interval"
        } else {
            "has no interval, because it is a change from 0"
        };
        return format!("the change of {who} {why}");
    };
    let changed = format!("{who} changed by {} ±{half:.2} points", percent(change.pct));
    match judged.outcome {
        GateOutcome::Passed => changed,
        GateOutcome::Failed => {
            format!("{changed}; the whole 95 % interval lies {} {bound}", judged.gate.side())
        }
        GateOutcome::Undecided if !change.settled => {
            format!("{changed}; {MARK}, so it decides nothing")
        }
        GateOutcome::Undecided => {
            format!("{changed}; the 95 % interval contains {bound}, and more repetitions narrow it")
        }
    }
}

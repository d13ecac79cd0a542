// SPDX-License-Identifier: GPL-2.0-or-later
//! A gate answers yes or no: did a score change by more than somebody allows? It fails only where
//! the whole 95 % interval of the change lies beyond the bound, so that noise fails nothing.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::compare::Comparison;
use crate::glob;

/// A bound on the changes of one score, written `[ARM:]SCORE<PERCENT%` or `[ARM:]SCORE>PERCENT%`, or of
/// several, where the score is a pattern with `*` and `?`.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// What stands before the operator: a score, perhaps behind an arm.
    target: String,
    side: Side,
    /// The bound, in percent.
    pct: f64,
}

/// The side of the bound on which a change fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Below,
    Above,
}

/// The reason why gates cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GateError {
    /// The text is not a gate.
    #[error(
        "{0}; expected [ARM:]SCORE<PERCENT% or [ARM:]SCORE>PERCENT%, for example 'throughput<-2%'"
    )]
    Syntax(String),
    /// The gate names an arm that is not there.
    #[error("--fail-if '{gate}': there is no arm `{arm}`; expected one of {known}")]
    UnknownArm {
        /// The gate.
        gate: String,
        /// The arm that it names.
        arm: String,
        /// The arms that have changes.
        known: String,
    },
    /// The gate names the arm from which all changes are measured.
    #[error(
        "--fail-if '{gate}': changes are from the first arm, `{arm}`, which has none itself; \
         expected one of {known}"
    )]
    FirstArm {
        /// The gate.
        gate: String,
        /// The first arm.
        arm: String,
        /// The arms that have changes.
        known: String,
    },
    /// The gate names a score that is not there.
    #[error("--fail-if '{gate}': there is no score `{score}`; expected one of {known}")]
    UnknownScore {
        /// The gate.
        gate: String,
        /// The score that it names.
        score: String,
        /// The scores that there are.
        known: String,
    },
    /// No arm has a change.
    #[error("--fail-if '{0}': there is only one arm and so no change; give a second --arm")]
    NoChange(String),
    /// A single repetition has no interval.
    #[error(
        "--fail-if '{0}': one repetition has no interval, and without one no gate can fail; \
         expected at least 2 repetitions"
    )]
    OneRepetition(String),
}

/// The change of one arm's score.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<'a> {
    /// The arm.
    pub arm: &'a str,
    /// The score's name.
    pub score: &'a str,
    /// The change, in percent; not finite where it is from 0.
    pub pct: f64,
    /// Half the width of its 95 % interval, in percentage points.
    pub ci95_pct: Option<f64>,
    /// False where time alone may still change the arm's score or the first arm's.
    pub settled: bool,
}

/// The answer of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateOutcome {
    /// The whole interval lies on the good side of the bound.
    Passed,
    /// The whole interval lies beyond the bound.
    Failed,
    /// The interval contains the bound, there is no interval, or the score is not settled.
    Undecided,
}

/// A gate's answer for one arm's score.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged<'a> {
    /// The gate.
    pub gate: &'a Gate,
    /// The change.
    pub change: Change<'a>,
    /// The answer.
    pub outcome: GateOutcome,
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Gate, GateError> {
        let refuse = |why: &str| Err(GateError::Syntax(format!("`{text}` {why}")));
        // The name of a score may have an operator in it, and a percentage has none.
        let Some(at) = text.rfind(['<', '>']) else {
            return refuse("has no < and no >");
        };
        let target = text[..at].trim();
        if target.is_empty() || target.ends_with(':') {
            return refuse("names no score");
        }
        if target.starts_with(':') {
            return refuse("names no arm before the colon");
        }
        let Some(number) = text[at + 1..].trim().strip_suffix('%') else {
            return refuse("does not end in a percentage such as -2%");
        };
        let pct = match number.trim_end().parse::<f64>() {
            Ok(pct) if pct.is_finite() => pct,
            _ => return refuse("does not end in a percentage such as -2%"),
        };
        Ok(Gate {
            target: target.to_string(),
            side: if text[at..].starts_with('<') { Side::Below } else { Side::Above },
            pct,
        })
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        let side = match self.side {
            Side::Below => '<',
            Side::Above => '>',
        };
        write!(out, "{}{side}{}%", self.target, self.pct)
    }
}

impl Gate {
    /// Returns the bound, in percent.
    pub fn bound_pct(&self) -> f64 {
        self.pct
    }

    /// Returns the words for the side on which a change fails.
    pub fn side(&self) -> &'static str {
        match self.side {
            Side::Below => "below",
            Side::Above => "above",
        }
    }

    /// Splits the target into an arm, if the gate names one, and a score. Scores may have a colon
    /// themselves, with a space behind it, as in `n=1: time`.
    fn split(&self, is_arm: impl Fn(&str) -> bool) -> (Option<&str>, &str) {
        match self.target.split_once(':') {
            Some((arm, score)) if is_arm(arm.trim()) || !score.starts_with(' ') => {
                (Some(arm.trim()), score.trim())
            }
            _ => (None, &self.target),
        }
    }

    /// Judges a change, given with half the width of its interval.
    pub fn judge(&self, pct: f64, ci95_pct: Option<f64>) -> GateOutcome {
        let Some(half) = ci95_pct.filter(|half| half.is_finite() && pct.is_finite()) else {
            return GateOutcome::Undecided;
        };
        let (low, high) = (pct - half, pct + half);
        let (is_beyond, is_within) = match self.side {
            Side::Below => (high < self.pct, low >= self.pct),
            Side::Above => (low > self.pct, high <= self.pct),
        };
        match (is_beyond, is_within) {
            (true, _) => GateOutcome::Failed,
            (_, true) => GateOutcome::Passed,
            _ => GateOutcome::Undecided,
        }
    }
}

/// Refuses gates that make no sense, before anything runs. `first` is the arm from which changes
/// are measured, if it has none itself; `arms` are those that have changes.
///
/// # Errors
/// Returns a [`GateError`] where there is no change, no interval, or an arm that is unknown.
pub fn check_gates(
    gates: &[Gate],
    first: Option<&str>,
    arms: &[&str],
    repetitions: u32,
) -> Result<(), GateError> {
    for gate in gates {
        if arms.is_empty() {
            return Err(GateError::NoChange(gate.to_string()));
        }
        if repetitions < 2 {
            return Err(GateError::OneRepetition(gate.to_string()));
        }
        let known = || arms.join(", ");
        let (arm, _) = gate.split(|name| arms.contains(&name) || first == Some(name));
        match arm {
            Some(arm) if first == Some(arm) => {
                return Err(GateError::FirstArm {
                    gate: gate.to_string(),
                    arm: arm.to_string(),
                    known: known(),
                });
            }
            Some(arm) if !arms.contains(&arm) => {
                return Err(GateError::UnknownArm {
                    gate: gate.to_string(),
                    arm: arm.to_string(),
                    known: known(),
                });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Judges the changes by the gates: gate by gate, and by each gate the changes in their order.
///
/// # Errors
/// Returns [`GateError::UnknownScore`] where no change is of the score that a gate names.
pub fn judge_gates<'a>(
    gates: &'a [Gate],
    changes: &[Change<'a>],
) -> Result<Vec<Judged<'a>>, GateError> {
    let mut judged = Vec::new();
    for gate in gates {
        let (arm, score) = gate.split(|name| changes.iter().any(|change| change.arm == name));
        let wanted = changes.iter().filter(|change| {
            is_named(score, change.score) && arm.is_none_or(|arm| arm == change.arm)
        });
        let before = judged.len();
        judged.extend(wanted.map(|change| Judged {
            gate,
            change: change.clone(),
            outcome: if change.settled {
                gate.judge(change.pct, change.ci95_pct)
            } else {
                GateOutcome::Undecided
            },
        }));
        if judged.len() == before {
            let mut known: Vec<&str> = Vec::new();
            for change in changes {
                if !known.contains(&change.score) {
                    known.push(change.score);
                }
            }
            return Err(GateError::UnknownScore {
                gate: gate.to_string(),
                score: score.to_string(),
                known: some(&known),
            });
        }
    }
    Ok(judged)
}

/// Returns the names with commas. An experiment may have hundreds.
fn some(names: &[&str]) -> String {
    const SHOWN: usize = 12;
    let (shown, further) = names.split_at(names.len().min(SHOWN));
    match further.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Returns whether a pattern matches a name, spaces and case apart.
fn is_named(pattern: &str, name: &str) -> bool {
    let plain = |text: &str| -> String {
        let kept = text.chars().filter(|c| !c.is_whitespace());
        kept.flat_map(char::to_lowercase).collect()
    };
    glob::matches(&plain(pattern), &plain(name))
}

impl Comparison {
    /// Returns the changes of every arm but the first, score by score.
    pub fn changes(&self) -> Vec<Change<'_>> {
        let is_settled = |arm| self.unsettled(arm).is_none();
        let rows = self.scores.iter().flat_map(|row| {
            let first = row.arms.first().is_none_or(is_settled);
            row.arms.iter().skip(1).map(move |arm| Change {
                arm: &arm.arm,
                score: &row.name,
                pct: arm.delta_pct,
                ci95_pct: arm.delta_ci95_pct,
                settled: first && is_settled(arm),
            })
        });
        rows.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn gate(text: &str) -> Gate {
        text.parse().unwrap()
    }

    #[test]
    fn gate_fails_only_where_whole_interval_lies_beyond_bound() {
        use GateOutcome::{Failed, Passed, Undecided};
        for (text, pct, half, expected) in [
            ("p99<-2%", -5.0, Some(1.0), Failed),
            ("p99<-2%", -3.0, Some(1.0), Undecided),
            ("p99<-2%", -1.0, Some(1.0), Passed),
            ("p99<-2%", -2.0, Some(0.0), Passed),
            ("p99>5%", 7.0, Some(1.0), Failed),
            ("p99>5%", 6.0, Some(1.0), Undecided),
            ("p99>5%", 4.0, Some(1.0), Passed),
            ("p99>5%", 90.0, None, Undecided),
            ("p99>5%", f64::INFINITY, Some(1.0), Undecided),
        ] {
            assert_eq!(gate(text).judge(pct, half), expected, "{text} {pct}");
        }
    }

    #[test]
    fn what_is_not_settled_decides_nothing() {
        let of = |settled| {
            let change = Change { arm: "a", score: "p99", pct: 90.0, ci95_pct: Some(1.0), settled };
            judge_gates(&[gate("p99>5%")], &[change]).unwrap()[0].outcome
        };
        assert_eq!([true, false].map(of), [GateOutcome::Failed, GateOutcome::Undecided]);
    }

    fn changes() -> Vec<Change<'static>> {
        let change =
            |arm, score| Change { arm, score, pct: 0.0, ci95_pct: Some(0.5), settled: true };
        vec![
            change("a", "wake-up latency"),
            change("b", "wake-up latency"),
            change("a", "n=1: time"),
            change("b", "n=1: time"),
        ]
    }

    #[test]
    fn scores_match_without_spaces_and_arms_limit_them() {
        for (text, expected) in [
            ("wake-up latency>1%", 2),
            ("Wake-uplatency > 1 %", 2),
            ("b:wake-up latency>1%", 1),
            ("b: wake-up latency>1%", 1),
            ("n=1: time>1%", 2),
            ("a:n=1: time>1%", 1),
            ("*>1%", 4),
            ("b:*time>1%", 1),
            ("n=?: time>1%", 2),
        ] {
            let gates = [gate(text)];
            assert_eq!(check_gates(&gates, Some("0"), &["a", "b"], 2), Ok(()), "{text}");
            assert_eq!(judge_gates(&gates, &changes()).unwrap().len(), expected, "{text}");
        }
    }

    #[test]
    fn refusals_list_what_is_known() {
        let words = |text: &str, arms: &[&str], repetitions| {
            let error = check_gates(&[gate(text)], Some("0"), arms, repetitions);
            error.unwrap_err().to_string()
        };
        assert!(words("c:time<1%", &["a", "b"], 5).ends_with("expected one of a, b"));
        assert!(words("0:time<1%", &["a", "b"], 5).contains("changes are from the first arm"));
        assert!(words("time<1%", &[], 5).contains("second --arm"));
        assert!(words("time<1%", &["a"], 1).contains("at least 2 repetitions"));
        let gates = [gate("speed<1%")];
        let words = judge_gates(&gates, &changes()).unwrap_err().to_string();
        assert!(words.ends_with("expected one of wake-up latency, n=1: time"), "{words}");
    }

    #[test]
    fn malformed_gates_are_refused() {
        for bad in [
            "", "p99", "<1%", "p99<", "p99<1", "p99<%", "p99<x%", "p99<inf%", "p99<NaN%", "a:<1%",
            ":p99<1%", "p99=1%",
        ] {
            let words = bad.parse::<Gate>().unwrap_err().to_string();
            assert!(words.contains("expected [ARM:]SCORE<PERCENT%"), "{bad}: {words}");
        }
    }

    proptest! {
        #[test]
        fn every_text_is_a_gate_or_refused(text in "\\PC*") {
            if let Ok(gate) = text.parse::<Gate>() {
                prop_assert_eq!(&gate.to_string().parse::<Gate>().unwrap(), &gate);
            }
        }

        #[test]
        fn written_gates_are_read_as_they_were(
            target in "[a-z][a-z0-9 <>:-]{0,12}[a-z0-9]",
            side in "[<>]",
            pct in -1e9..1e9f64,
        ) {
            let text = format!("{target}{side}{pct}%");
            let gate: Gate = text.parse().unwrap();
            prop_assert_eq!(gate.to_string(), text);
            prop_assert_eq!(gate.bound_pct(), pct);
        }

        /// At most one of "below" and "above" the same bound fails, and both are undecided together.
        #[test]
        fn opposite_gates_never_fail_together(
            pct in -100.0..100.0f64, half in 0.0..50.0f64, bound in -100.0..100.0f64,
        ) {
            let outcome = |side| gate(&format!("s{side}{bound}%")).judge(pct, Some(half));
            let (below, above) = (outcome('<'), outcome('>'));
            prop_assert!(below != GateOutcome::Failed || above == GateOutcome::Passed);
            prop_assert!(above != GateOutcome::Failed || below == GateOutcome::Passed);
        }
    }
}

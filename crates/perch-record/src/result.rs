// SPDX-License-Identifier: GPL-2.0-or-later
//! The result of a replay in the form that programs read: the JSON of `perch replay`, and what
//! Python's `perch.replay` returns. The names of the types in its schema are part of the format.

use std::collections::BTreeMap;
use std::io::Read;

use perch_policy::{Policy, Topology};
use schemars::JsonSchema;
use serde::Serialize;

use crate::agreement::{Agreement, ENOUGH};
use crate::cause::Cause;
use crate::decision::{KindTally, Why};
use crate::format::Reader;
use crate::replay::{Outcome, Tally};

/// Values by the name of what they are about.
type ByName<T> = BTreeMap<&'static str, T>;

/// The result of a replay.
#[derive(Serialize, JsonSchema)]
#[schemars(description = "")]
pub struct ReplayResult<'a> {
    /// The file.
    pub file: &'a str,
    /// The recorded kernel's version.
    pub kernel: &'a str,
    /// The kernel that the model is of.
    pub era: String,
    /// The command that was recorded.
    pub command: &'a [String],
    /// CPUs of the machine.
    pub cpus: usize,
    /// Wake-ups of other classes.
    pub others: u64,
    /// Wake-ups that what was not recorded decides.
    pub unseen: u64,
    /// The agreement of the model with the kernel.
    pub agreement: Agreements,
    /// The choices that differ, by cause.
    pub causes: ByName<u64>,
    /// Wake-ups that needed no decision, by reason; null where the end of the file is missing.
    pub undecided: Option<ByName<u64>>,
    /// Decisions about queues, by kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub decisions: ByName<QueueDecisions>,
    /// The comparison of the kernel with the model in detail.
    pub model: Comparison,
    /// The same of the model with the policy of --set; null without --set.
    pub change: Option<Comparison>,
}

impl<'a> ReplayResult<'a> {
    /// Returns the result of a replay of `file`, whose `reader` is at its end, with the policies
    /// that were asked.
    pub fn of<R: Read>(
        file: &'a str,
        reader: &'a Reader<R>,
        topology: &Topology,
        model: Policy,
        other: Option<Policy>,
        outcome: &Outcome,
    ) -> ReplayResult<'a> {
        let header = reader.header();
        let decisions = outcome.kinds();
        let undecided = reader.footer().map(|footer| footer.undecided.by_name());
        let change = other.zip(outcome.change.as_ref());
        ReplayResult {
            file,
            kernel: &header.kernel,
            era: model.era().to_string(),
            command: &header.command,
            cpus: topology.nr_cpus(),
            others: outcome.others,
            unseen: outcome.unseen,
            agreement: Agreements::of(&outcome.model),
            causes: (Cause::ALL.into_iter())
                .map(|cause| (cause.name(), outcome.model.by_cause[cause as usize]))
                .collect(),
            undecided: undecided.map(ByName::from),
            decisions: decisions
                .map(|(kind, tally)| (kind.name(), QueueDecisions::of(tally)))
                .collect(),
            model: Comparison::of(model, &outcome.model),
            change: change.map(|(policy, tally)| Comparison::of(policy, tally)),
        }
    }
}

/// The agreement as JSON.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Json")]
pub struct Agreements {
    /// All choices.
    pub total: Part,
    /// Those for which one CPU was possible.
    pub forced: Part,
    /// All others.
    pub unforced: Part,
    /// The reason that agrees least often; null where no reason has enough choices.
    pub worst: Option<Worst>,
    /// The number of choices that a reason needs to be the worst.
    pub worst_at_least: u64,
}

impl Agreements {
    pub(crate) fn of(model: &Tally) -> Agreements {
        let summary = model.summary();
        Agreements {
            total: Part::of(&summary.total),
            forced: Part::of(&summary.forced),
            unforced: Part::of(&summary.unforced()),
            worst: summary
                .worst
                .map(|worst| Worst { reason: worst.reason.name(), part: Part::of(&worst.choices) }),
            worst_at_least: ENOUGH,
        }
    }
}

/// The agreement about some of the choices.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Part {
    /// The choices.
    pub wake_ups: u64,
    /// Those that are the kernel's.
    pub same: u64,
    /// Their share, 0 to 1; null where there are no wake-ups.
    pub share: Option<f64>,
}

impl Part {
    fn of(part: &Agreement) -> Part {
        Part {
            wake_ups: part.asked,
            same: part.same(),
            share: (part.asked > 0).then(|| part.same() as f64 / part.asked as f64),
        }
    }
}

/// The agreement about one reason.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Worst {
    /// The reason.
    pub reason: &'static str,
    /// The agreement.
    #[serde(flatten)]
    pub part: Part,
}

/// The agreement about one kind.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "JsonKind")]
pub struct QueueDecisions {
    /// The decisions.
    pub asked: u64,
    /// Those with a choice.
    pub choice: u64,
    /// Those that differ from the kernel's.
    pub differ: u64,
    /// Those that differ, by cause.
    pub because: ByName<u64>,
}

impl QueueDecisions {
    fn of(tally: &KindTally) -> QueueDecisions {
        let because = Why::ALL.into_iter().zip(tally.by_why);
        QueueDecisions {
            asked: tally.asked,
            choice: tally.choice,
            differ: tally.differ(),
            because: because.map(|(why, n)| (why.name(), n)).collect(),
        }
    }
}

/// A comparison of two policies.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "JsonTally")]
pub struct Comparison {
    /// The second policy's modes.
    pub modes: String,
    /// Wake-ups that were compared.
    pub wake_ups: u64,
    /// Those for which both choose the same CPU.
    pub same: u64,
    /// By reason: wake-ups, and those that differ.
    pub reasons: ByName<[u64; 2]>,
    /// By reason: choices while no CPU was idle, and with an idle CPU to win.
    pub stakes: ByName<[Choices; 2]>,
    /// By reason: the choices that were not forced and during which nothing changed that the recorder
    /// looked at twice, and those of them that differ.
    pub unchanged: ByName<[u64; 2]>,
    /// By distance from the previous CPU: the first policy's choices, and the second one's.
    pub distances: ByName<[u64; 2]>,
    /// Choices of idle CPUs: the first policy's, and the second one's.
    pub idle: [u64; 2],
    /// Choices of CPUs that the task fits: the first policy's, and the second one's.
    pub fits: [u64; 2],
    /// CPUs that the second policy looked at.
    pub examined: u64,
}

impl Comparison {
    fn of(policy: Policy, tally: &Tally) -> Comparison {
        let whole = |stakes: &[Agreement; 2]| {
            let all: Agreement = stakes.iter().sum();
            [all.asked, all.differ]
        };
        Comparison {
            modes: policy.modes().to_string(),
            wake_ups: tally.asked,
            same: tally.same,
            reasons: (tally.reasons())
                .map(|(reason, stakes)| (reason.name(), whole(&stakes)))
                .collect(),
            stakes: (tally.reasons())
                .map(|(reason, [saturated, idle])| {
                    let choices = [Choices::of(saturated, false), Choices::of(idle, true)];
                    (reason.name(), choices)
                })
                .collect(),
            unchanged: (tally.reasons())
                .map(|(reason, _)| {
                    let part = tally.unchanged[reason as usize];
                    (reason.name(), [part.asked, part.differ])
                })
                .collect(),
            distances: (tally.distances())
                .map(|(distance, counts)| (distance.name(), counts))
                .collect(),
            idle: tally.idle,
            fits: tally.fits,
            examined: tally.examined,
        }
    }
}

/// The choices for one reason.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "JsonAgreement")]
pub struct Choices {
    /// True of those with an idle CPU to win.
    pub idle_to_win: bool,
    /// The choices.
    pub wake_ups: u64,
    /// Those that differ.
    pub differ: u64,
    /// Those that differ for no cause.
    pub unexplained: u64,
}

impl Choices {
    fn of(agreement: Agreement, idle_to_win: bool) -> Choices {
        Choices {
            idle_to_win,
            wake_ups: agreement.asked,
            differ: agreement.differ,
            unexplained: agreement.unexplained,
        }
    }
}

#[cfg(test)]
mod tests {
    use perch_policy::Reason;
    use serde_json::{json, to_value};

    use super::*;

    #[test]
    fn worst_reason_is_one_object_with_its_share() {
        let mut tally = Tally::default();
        for (reason, asked, differ) in [(Reason::TargetIdle, 9_850, 4), (Reason::SlowPath, 150, 30)]
        {
            let choices = &mut tally.by_reason[reason as usize][1];
            (choices.asked, choices.differ) = (asked, differ);
        }
        tally.by_reason[Reason::Affinity as usize][0].asked = 80;
        tally.forced[Reason::Affinity as usize].asked = 80;
        let json = to_value(Agreements::of(&tally)).expect("JSON");
        let worst = json!({"reason": "slow path", "wake_ups": 150, "same": 120, "share": 0.8});
        assert_eq!(json["worst"], worst);
        assert_eq!(json["worst_at_least"], 30);
        let forced = json!({"wake_ups": 80, "same": 80, "share": 1.0});
        assert_eq!(json["forced"], forced);
    }

    #[test]
    fn agreement_over_nothing_has_no_share() {
        let json = to_value(Agreements::of(&Tally::default())).expect("JSON");
        assert!(json["worst"].is_null());
        for part in ["total", "forced", "unforced"] {
            assert!(json[part]["share"].is_null(), "{part}");
        }
    }
}

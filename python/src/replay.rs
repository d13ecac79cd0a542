// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch replay` as a function: the model's agreement with a recorded kernel, and what other modes
//! would change. A test compares the result with the program's JSON.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;

use perch_policy::{Mechanism, Mode, Policy, Reason};
use perch_record::{Agreement, Cause, Distance, ENOUGH, Kind, Outcome, Summary, Tally, Why};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::of_argument;
use crate::recording::{Opened, read_era, wrong};
use crate::threads;

/// Counts by name.
type Counts<T> = BTreeMap<&'static str, T>;

#[derive(IntoPyObject)]
struct Part {
    wake_ups: u64,
    same: u64,
    share: Option<f64>,
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

#[derive(IntoPyObject)]
struct Worst {
    reason: &'static str,
    wake_ups: u64,
    same: u64,
    share: Option<f64>,
}

#[derive(IntoPyObject)]
struct Agreements {
    total: Part,
    forced: Part,
    unforced: Part,
    worst: Option<Worst>,
    worst_at_least: u64,
}

impl Agreements {
    fn of(summary: &Summary) -> Agreements {
        let worst = summary.worst.map(|(reason, part)| {
            let Part {
                wake_ups,
                same,
                share,
            } = Part::of(&part);
            Worst {
                reason: reason.name(),
                wake_ups,
                same,
                share,
            }
        });
        Agreements {
            total: Part::of(&summary.total),
            forced: Part::of(&summary.forced),
            unforced: Part::of(&summary.unforced()),
            worst,
            worst_at_least: ENOUGH,
        }
    }
}

#[derive(IntoPyObject)]
struct Stake {
    idle_to_win: bool,
    wake_ups: u64,
    differ: u64,
    unexplained: u64,
}

#[derive(IntoPyObject)]
struct Choices {
    modes: String,
    wake_ups: u64,
    same: u64,
    reasons: Counts<[u64; 2]>,
    stakes: Counts<[Stake; 2]>,
    distances: Counts<[u64; 2]>,
    idle: [u64; 2],
    fits: [u64; 2],
    examined: u64,
}

impl Choices {
    fn of(policy: &Policy, tally: &Tally) -> Choices {
        let mut reasons: Vec<(Reason, [Agreement; 2])> = (Reason::ALL.iter().copied())
            .zip(tally.by_reason)
            .filter(|(_, stakes)| whole(stakes).asked > 0)
            .collect();
        reasons.sort_by_key(|(_, stakes)| Reverse(whole(stakes).asked));
        let by = &tally.by_distance;
        let distance = |d: Distance| {
            let was = by[d as usize].iter().sum();
            (d.name(), [was, by.iter().map(|row| row[d as usize]).sum()])
        };
        let stake = |part: Agreement, idle_to_win: bool| Stake {
            idle_to_win,
            wake_ups: part.asked,
            differ: part.differ,
            unexplained: part.unexplained,
        };
        Choices {
            modes: policy.modes().to_string(),
            wake_ups: tally.asked,
            same: tally.same,
            reasons: (reasons.iter())
                .map(|(reason, stakes)| (reason.name(), whole(stakes)))
                .map(|(name, all)| (name, [all.asked, all.differ]))
                .collect(),
            stakes: (reasons.iter())
                .map(|&(reason, [saturated, idle])| {
                    (reason.name(), [stake(saturated, false), stake(idle, true)])
                })
                .collect(),
            distances: Distance::ALL.into_iter().map(distance).collect(),
            idle: tally.idle,
            fits: tally.fits,
            examined: tally.examined,
        }
    }
}

/// Returns the counts of a reason, whatever was at stake.
fn whole(stakes: &[Agreement; 2]) -> Agreement {
    let mut all = stakes[0];
    all.add(&stakes[1]);
    all
}

#[derive(IntoPyObject)]
struct Queues {
    asked: u64,
    choice: u64,
    differ: u64,
    because: Counts<u64>,
}

/// Returns the agreement about queues by kind of decision, of the kinds that were recorded.
fn queues(outcome: &Outcome) -> Counts<Queues> {
    let kinds = Kind::ALL.into_iter().zip(&outcome.decisions);
    let kinds = kinds.filter(|(_, tally)| tally.asked > 0);
    let found = kinds.map(|(kind, tally)| {
        let because = Why::ALL.into_iter().zip(tally.by_why);
        let queues = Queues {
            asked: tally.asked,
            choice: tally.choice,
            differ: tally.differ(),
            because: because.map(|(why, n)| (why.name(), n)).collect(),
        };
        (kind.name(), queues)
    });
    found.collect()
}

/// Changes of a kernel's modes, as Python gives them: `"cluster=posted"` or `{"cluster": "posted"}`.
#[derive(FromPyObject)]
pub enum Changes {
    /// As `perch replay --set` takes them.
    Text(String),
    /// The modes by mechanism.
    ByName(BTreeMap<String, String>),
}

impl Changes {
    fn pairs(self) -> Vec<String> {
        match self {
            Changes::Text(text) => text.split(',').map(str::to_string).collect(),
            Changes::ByName(modes) => (modes.into_iter())
                .map(|(mechanism, mode)| format!("{mechanism}={mode}"))
                .collect(),
        }
    }
}

/// Returns the policy with the model's modes and these changes; none without changes.
pub fn other(model: Policy, changes: Option<Changes>) -> PyResult<Option<Policy>> {
    let mut modes = model.modes();
    let pairs = changes.map_or_else(Vec::new, Changes::pairs);
    for pair in &pairs {
        let refused = |reason: String| of_argument(format!("modes: `{pair}`: {reason}"));
        let (mechanism, mode) = pair
            .split_once('=')
            .ok_or_else(|| refused("expected MECHANISM=MODE".to_string()))?;
        let mode: Mode = (mode.parse()).map_err(|error| refused(format!("{error}")))?;
        let recording = Mechanism::named(mechanism).map(Mechanism::recording);
        let lacks = recording.filter(|(whose, _)| *whose != perch_policy::Recording::Kernel);
        if let Some((_, lacks)) = lacks.filter(|_| mode != Mode::Off) {
            return Err(refused(format!(
                "a recording does not have what {mechanism} decides by: {lacks}"
            )));
        }
        (modes.set(mechanism, mode)).map_err(|error| refused(format!("{error}")))?;
    }
    Ok((!pairs.is_empty()).then(|| Policy::new(model.era(), modes)))
}

/// Asks the model of the recorded kernel, and a policy with other modes, about every wake-up of a
/// recording; returns what `perch replay --format json` prints.
#[pyfunction]
#[pyo3(signature = (path, modes=None, *, era=None, jobs=None))]
#[expect(
    clippy::needless_pass_by_value,
    reason = "Python hands over its arguments"
)]
pub fn replay<'py>(
    py: Python<'py>,
    path: PathBuf,
    modes: Option<Changes>,
    era: Option<&str>,
    jobs: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let era = era.map(read_era).transpose()?;
    let mut opened = Opened::interruptible(&path, era)?;
    let other = other(opened.subject.model, modes)?;
    let outcome = py.detach(|| {
        let (reader, topology) = (&mut opened.reader, &opened.subject.topology);
        perch_record::replay(reader, topology, opened.subject.model, other, threads(jobs))
    });
    let outcome = outcome.map_err(wrong(&opened.path))?;
    opened.warn(py)?;
    if outcome.model.asked == 0 {
        return Err(of_argument(format!(
            "{}: {}",
            opened.path,
            perch_record::no_wake_ups(outcome.others)
        )));
    }
    let header = opened.reader.header();
    let causes: Counts<u64> = (Cause::ALL.into_iter())
        .map(|cause| (cause.name(), outcome.model.by_cause[cause as usize]))
        .collect();
    let undecided = (opened.reader.footer())
        .map(|footer| -> Counts<u64> { footer.undecided.by_name().into_iter().collect() });
    let change = other.zip(outcome.change.as_ref());
    let found = PyDict::new(py);
    found.set_item("file", &opened.path)?;
    found.set_item("kernel", &header.kernel)?;
    found.set_item("era", opened.subject.model.era().to_string())?;
    found.set_item("command", &header.command)?;
    found.set_item("cpus", opened.subject.topology.nr_cpus())?;
    found.set_item("others", outcome.others)?;
    found.set_item("unseen", outcome.unseen)?;
    found.set_item("agreement", Agreements::of(&outcome.model.summary()))?;
    found.set_item("causes", causes)?;
    found.set_item("undecided", undecided)?;
    let queues = queues(&outcome);
    if !queues.is_empty() {
        found.set_item("decisions", queues)?;
    }
    found.set_item("model", Choices::of(&opened.subject.model, &outcome.model))?;
    let change = change.map(|(policy, tally)| Choices::of(&policy, tally));
    found.set_item("change", change)?;
    Ok(found)
}

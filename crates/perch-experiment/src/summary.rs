// SPDX-License-Identifier: GPL-2.0-or-later
//! The counts of an experiment's cells.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cell::CellReport;
use crate::judge::Verdict;

/// Counts of the cells, without the calibration cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Cells that count.
    pub scored: usize,
    /// The scored cells whose change is within the tolerance.
    pub within: usize,
    /// Cells whose direction counts.
    pub sign_scored: usize,
    /// The cells whose direction counts and agrees with the published one.
    pub sign_agrees: usize,
    /// The scored cells whose change agrees with the published one, interval and all.
    #[serde(default)]
    pub agrees: usize,
    /// The scored cells whose change disagrees.
    #[serde(default)]
    pub disagrees: usize,
    /// The scored cells that the repetitions did not decide.
    #[serde(default)]
    pub undecided: usize,
    /// The cells whose direction counts and is the published one, interval and all.
    #[serde(default)]
    pub direction_agrees: usize,
    /// The cells whose direction counts and is another one.
    #[serde(default)]
    pub direction_disagrees: usize,
    /// The cells whose direction counts and was not decided.
    #[serde(default)]
    pub direction_undecided: usize,
    /// Cells whose simulated baseline is 0.8 to 1.25 of the published one.
    pub baseline_close: usize,
    /// Scored cells whose published baseline is an absolute value; `baseline_close` counts those of
    /// them that are close.
    pub baseline_rows: usize,
}

impl Summary {
    pub(crate) fn of(cells: &[CellReport]) -> Summary {
        let scored = || cells.iter().filter(|cell| !cell.calibration);
        let signs = || cells.iter().filter(|cell| cell.sign_is_scored());
        let verdicts = |is: Verdict| scored().filter(|cell| cell.verdict == is).count();
        let directions = |is: Verdict| signs().filter(|cell| cell.direction == Some(is)).count();
        Summary {
            agrees: verdicts(Verdict::Agrees),
            disagrees: verdicts(Verdict::Disagrees),
            undecided: verdicts(Verdict::Undecided),
            direction_agrees: directions(Verdict::Agrees),
            direction_disagrees: directions(Verdict::Disagrees),
            direction_undecided: directions(Verdict::Undecided),
            scored: scored().count(),
            within: scored().filter(|cell| cell.within).count(),
            sign_scored: signs().count(),
            sign_agrees: signs().filter(|cell| cell.sign_agrees).count(),
            baseline_close: scored().filter(|cell| cell.baseline_is_close()).count(),
            baseline_rows: scored().filter(|cell| cell.baseline_ratio.is_some()).count(),
        }
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The verdicts of a new run of experiments against those of a run that somebody kept.

use crate::cell::CellReport;
use crate::judge::Verdict;
use crate::report::Report;

/// A cell of the kept run whose costs were not fitted on it, and its verdict in both runs.
#[derive(Clone, Debug, PartialEq)]
pub struct CellVerdict<'a> {
    /// The experiment's name.
    pub experiment: &'a str,
    /// The cell in the kept run.
    pub kept: &'a CellReport,
    /// The cell in the new run; none where that lacks it.
    pub new: Option<&'a CellReport>,
}

/// How a cell's verdict moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// It is the same or better.
    Held,
    /// The cell agreed and disagrees.
    Failed,
    /// It got worse in another way: from agrees to undecided, or from undecided to disagrees.
    Worse,
    /// The new run lacks the cell.
    Missing,
}

impl CellVerdict<'_> {
    /// Returns the cell's name, `EXPERIMENT/BENCHMARK/WHERE/ROW`.
    pub fn name(&self) -> String {
        let CellReport { benchmark, place, row, .. } = self.kept;
        format!("{}/{benchmark}/{place}/{row}", self.experiment)
    }

    /// Returns how the verdict moved.
    pub fn moved(&self) -> Moved {
        use Verdict::{Agrees, Disagrees, Undecided};
        let Some(new) = self.new else {
            return Moved::Missing;
        };
        match (self.kept.verdict, new.verdict) {
            (Agrees, Disagrees) => Moved::Failed,
            (Agrees, Undecided) | (Undecided, Disagrees) => Moved::Worse,
            _ => Moved::Held,
        }
    }
}

/// Sets the cells of `kept` beside those of `new`, in the order of `kept`. Cells on which costs were
/// fitted are left out, because nothing scores them.
pub fn verdicts<'a>(kept: &'a [Report], new: &'a [Report]) -> Vec<CellVerdict<'a>> {
    let mut all = Vec::new();
    for report in kept {
        for cell in report.cells.iter().filter(|cell| !cell.calibration) {
            let key = |one: &'a CellReport| (&one.benchmark, &one.place, &one.row);
            let found = (new.iter())
                .filter(|other| other.experiment == report.experiment)
                .flat_map(|other| &other.cells)
                .find(|other| key(other) == key(cell) && !other.calibration);
            all.push(CellVerdict { experiment: &report.experiment, kept: cell, new: found });
        }
    }
    all
}

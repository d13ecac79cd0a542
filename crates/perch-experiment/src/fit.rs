// SPDX-License-Identifier: GPL-2.0-or-later
//! The distance of a whole table's changes from the published ones, in the simulation and in other
//! postings of the series, which show how much of a miss is the measurement's own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cell::CellReport;
use crate::stats::spearman;

/// The distance of one column of changes from the published one, over the rows that have both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Closeness {
    /// The number of rows.
    pub rows: usize,
    /// The root of the mean square of the differences, in percentage points.
    pub rms_pp: f64,
    /// Spearman's coefficient of the order of the changes; null for fewer than two rows, and where
    /// all changes of a column are equal.
    pub spearman: Option<f64>,
}

impl Closeness {
    /// Returns the closeness of pairs of a published change and another; none where there are none.
    pub(crate) fn of(pairs: &[(f64, f64)]) -> Option<Closeness> {
        let (published, other): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let squares: f64 = pairs.iter().map(|(a, b)| (a - b).powi(2)).sum();
        (!pairs.is_empty()).then(|| Closeness {
            rows: pairs.len(),
            rms_pp: (squares / pairs.len() as f64).sqrt(),
            spearman: spearman(&published, &other),
        })
    }
}

/// Another posting of the published table, and the simulation on the same rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Posting {
    /// The posting, for example `v8`.
    pub posting: String,
    /// The other posting's changes beside the published ones.
    pub posted: Closeness,
    /// The simulated changes of the same rows beside the published ones.
    pub simulated: Closeness,
}

/// The fit of one table, or of all tables of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fit {
    /// The benchmark; null for all tables together.
    pub benchmark: Option<String>,
    /// The place; null for all tables together.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// The unit; null for all tables together.
    pub unit: Option<String>,
    /// The simulated changes of all rows that are scored.
    pub simulated: Closeness,
    /// The other postings of the series, where there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub postings: Vec<Posting>,
}

impl Fit {
    /// Returns the fit of every table of `cells`, in their order, and then that of all. Rows on which
    /// costs were fitted, and changes from 0, are left out; a table of nothing else has no fit.
    pub(crate) fn all(cells: &[CellReport]) -> Vec<Fit> {
        let tables = cells.chunk_by(CellReport::shares_table);
        let fits = tables.filter_map(|cells| {
            let whole = Fit::of(cells)?;
            Some(Fit {
                benchmark: Some(cells[0].benchmark.clone()),
                place: Some(cells[0].place.clone()),
                unit: Some(cells[0].unit.clone()),
                ..whole
            })
        });
        fits.chain(Fit::of(cells)).collect()
    }

    fn of(cells: &[CellReport]) -> Option<Fit> {
        let counts = |cell: &&CellReport| {
            let (published, simulated) = (cell.published.delta_pct, cell.simulated.delta_pct);
            !cell.calibration && published.is_finite() && simulated.is_finite()
        };
        let cells: Vec<&CellReport> = cells.iter().filter(counts).collect();
        let simulated = |cell: &CellReport| (cell.published.delta_pct, cell.simulated.delta_pct);
        let pairs: Vec<_> = cells.iter().map(|cell| simulated(cell)).collect();
        let mut names: Vec<&str> = Vec::new();
        for repeat in cells.iter().flat_map(|cell| &cell.published.repeats) {
            if !names.contains(&repeat.posting.as_str()) {
                names.push(&repeat.posting);
            }
        }
        let postings = names.iter().filter_map(|name| {
            let both = cells.iter().filter_map(|cell| {
                let mut repeats = cell.published.repeats.iter();
                let repeat = repeats.find(|repeat| repeat.posting == *name)?;
                let posted = (cell.published.delta_pct, repeat.delta_pct);
                Some((posted, simulated(cell)))
            });
            let (posted, simulated): (Vec<_>, Vec<_>) = both.unzip();
            Some(Posting {
                posting: name.to_string(),
                posted: Closeness::of(&posted)?,
                simulated: Closeness::of(&simulated)?,
            })
        });
        Some(Fit {
            benchmark: None,
            place: None,
            unit: None,
            simulated: Closeness::of(&pairs)?,
            postings: postings.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Differences of 3 and 4 have the mean square 12.5.
    #[test]
    fn closeness_is_worked_out_by_hand() {
        let found = Closeness::of(&[(10.0, 13.0), (20.0, 16.0)]).unwrap();
        assert!((found.rms_pp - 12.5f64.sqrt()).abs() < 1e-12);
        assert_eq!((found.rows, found.spearman), (2, Some(1.0)));
        let one = Closeness::of(&[(10.0, 7.0)]).unwrap();
        assert_eq!((one.rms_pp, one.spearman), (3.0, None));
        assert_eq!(Closeness::of(&[]), None);
    }
}

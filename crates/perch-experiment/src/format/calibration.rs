// SPDX-License-Identifier: GPL-2.0-or-later
//! The cells on which costs were fitted.

use super::raw::RawCalibration;
use super::refuse::refuse;
use crate::error::{ExperimentError, Source};
use crate::glob;
use crate::model::{BASELINE, Calibration, Cell, PATCHED};

/// Marks the cells that `raw` names; `raw` may give the row as a pattern.
pub(super) fn calibrate(
    source: &Source,
    raw: &RawCalibration,
    cells: &mut [Cell],
) -> Result<(), ExperimentError> {
    for column in &raw.columns {
        if ![BASELINE, PATCHED].contains(&column.get_ref().as_str()) {
            let reason = format!("`{}`", column.get_ref());
            let expected = "expected `baseline` or `patched`";
            let key = "calibration.columns";
            return Err(refuse(source, column, key, &reason, expected));
        }
    }
    for benchmark in &raw.benchmarks {
        let path = format!("{}/{}/{}", benchmark.get_ref(), raw.place.get_ref(), raw.row.get_ref());
        let mut named = 0;
        for cell in cells.iter_mut().filter(|cell| glob::matches(&path, &cell.path())) {
            named += 1;
            if cell.calibration.is_some() {
                let reason = format!("{} was named already", cell.path());
                return Err(refuse(source, benchmark, "calibration", &reason, ""));
            }
            cell.calibration = Some(Calibration {
                columns: raw.columns.iter().map(|column| column.get_ref().clone()).collect(),
                why: raw.why.clone(),
            });
        }
        if named == 0 {
            let reason = format!("there is no cell {path}");
            let expected = "expected a benchmark, a place and a row from above";
            return Err(refuse(source, benchmark, "calibration", &reason, expected));
        }
    }
    Ok(())
}

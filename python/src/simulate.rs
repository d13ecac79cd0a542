// SPDX-License-Identifier: GPL-2.0-or-later
//! One simulation, as `perch simulate` makes it.

use std::path::PathBuf;

use perch_experiment::{ExperimentError, Limits, Prepared, Simulation};
use pyo3::prelude::*;

use crate::error::of_experiment;

/// The name of a simulation's text in errors.
const ORIGIN: &str = "simulation";

fn prepare(text: &str, allow_scx: bool) -> Result<Prepared, ExperimentError> {
    let limits = Limits { allow_scx, ..Limits::default() };
    Simulation::from_json(text, ORIGIN)?.prepare(ORIGIN, limits)
}

/// Returns the result of a simulation in JSON, the same bytes as `perch simulate` prints. It is taken
/// from the store where it is there, and kept there.
#[pyfunction]
#[pyo3(signature = (text, store=None, allow_scx=false))]
#[expect(clippy::needless_pass_by_value, reason = "Python hands over its arguments")]
pub fn simulate_json(
    py: Python<'_>,
    text: &str,
    store: Option<PathBuf>,
    allow_scx: bool,
) -> PyResult<String> {
    let simulate = || Ok(prepare(text, allow_scx)?.stored(store.as_deref())?.to_json());
    py.detach(simulate).map_err(of_experiment)
}

/// Returns the key of a simulation.
#[pyfunction]
#[pyo3(signature = (text, allow_scx=false))]
pub fn key(py: Python<'_>, text: &str, allow_scx: bool) -> PyResult<String> {
    let key = py.detach(|| prepare(text, allow_scx).map(|prepared| prepared.key.to_string()));
    key.map_err(of_experiment)
}

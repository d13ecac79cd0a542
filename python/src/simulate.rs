// SPDX-License-Identifier: GPL-2.0-or-later
//! One simulation, as `perch simulate` makes it.

use std::path::PathBuf;

use perch_sweep::{Prepared, Simulation, Store, Stored, SweepError};
use perch_workload::Budget;
use pyo3::prelude::*;

use crate::error::of_sweep;

/// The name of a simulation's text in errors.
const ORIGIN: &str = "simulation";

fn prepare(text: &str) -> Result<Prepared, SweepError> {
    Simulation::from_json(text, ORIGIN)?.prepare(ORIGIN, Budget::DEFAULT)
}

/// Returns the result of a simulation in JSON, the same bytes as `perch simulate` prints. It is taken
/// from the store where it is there, and kept there.
#[pyfunction]
#[pyo3(signature = (text, store=None))]
#[expect(
    clippy::needless_pass_by_value,
    reason = "Python hands over its arguments"
)]
pub fn simulate_json(py: Python<'_>, text: &str, store: Option<PathBuf>) -> PyResult<String> {
    let simulate = || -> Result<String, SweepError> {
        let prepared = prepare(text)?;
        let store = store.as_deref().map(Store::open).transpose()?;
        if let Some(store) = &store
            && let Some(stored) = store.get(&prepared.key)?
        {
            return Ok(stored.to_json());
        }
        let found = prepared.run()?;
        let stored = Stored::new(prepared.key, prepared.asked, found);
        if let Some(store) = &store {
            store.put(&stored)?;
        }
        Ok(stored.to_json())
    };
    py.detach(simulate).map_err(of_sweep)
}

/// Returns the key of a simulation.
#[pyfunction]
pub fn key(py: Python<'_>, text: &str) -> PyResult<String> {
    let key = py.detach(|| prepare(text).map(|prepared| prepared.key.to_string()));
    key.map_err(of_sweep)
}

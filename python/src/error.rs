// SPDX-License-Identifier: GPL-2.0-or-later
//! perch's errors as Python's: ValueError where the input is to blame, RuntimeError otherwise.

use perch_experiment::ExperimentError;
use perch_machine::MachineError;
use pyo3::PyErr;
use pyo3::exceptions::{PyRuntimeError, PyValueError};

/// Returns the error of a comparison, a simulation, a sweep or a store.
pub fn of_experiment(error: ExperimentError) -> PyErr {
    of(error.is_input(), error.to_string())
}

#[expect(clippy::needless_pass_by_value, reason = "map_err hands it over")]
pub fn of_machine(error: MachineError) -> PyErr {
    of(true, error.to_string())
}

pub fn of_argument(message: impl Into<String>) -> PyErr {
    of(true, message.into())
}

fn of(is_input: bool, message: String) -> PyErr {
    if is_input { PyValueError::new_err(message) } else { PyRuntimeError::new_err(message) }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The store of results.

use std::path::PathBuf;

use perch_sweep::{MODEL, Stored};
use pyo3::prelude::*;

use crate::error::{of_argument, of_sweep};

/// A folder of results (docs/sweeps.md).
#[pyclass(module = "perch", frozen)]
pub struct Store {
    store: perch_sweep::Store,
    path: PathBuf,
}

#[pymethods]
impl Store {
    /// Opens the store in a folder, and makes it where nothing is.
    #[new]
    fn new(path: PathBuf) -> PyResult<Store> {
        let store = perch_sweep::Store::open(&path).map_err(of_sweep)?;
        Ok(Store { store, path })
    }

    /// The folder.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Returns the keys of all results, sorted.
    fn keys(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let keys = py.detach(|| self.store.keys()).map_err(of_sweep)?;
        Ok(keys.iter().map(ToString::to_string).collect())
    }

    /// Keeps a result, the JSON that `perch.simulate_json` returned somewhere, and returns its key.
    /// A text that is not as a perch of this model wrote it is refused.
    fn put(&self, py: Python<'_>, text: &str) -> PyResult<String> {
        py.detach(|| {
            let refuse = |reason: String| Err(of_argument(format!("result: {reason}")));
            let stored: Stored = match serde_json::from_str(text) {
                Ok(stored) => stored,
                Err(error) => {
                    return refuse(format!("{error}; expected what simulate_json returns"));
                }
            };
            if stored.model != MODEL {
                let model = stored.model;
                return refuse(format!("it is of model {model}, and this perch is {MODEL}"));
            }
            let key = stored.key.clone();
            let again = Stored::new(stored.key, stored.simulation, stored.result);
            if again.digest != stored.digest || again.to_json() != text {
                return refuse(format!("{key} is not as it was made"));
            }
            self.store.put(&again).map_err(of_sweep)?;
            Ok(key.to_string())
        })
    }

    /// Returns the files that are not as the store wrote them, and what is wrong with each.
    fn verify(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let faults = py.detach(|| self.store.verify()).map_err(of_sweep)?;
        let faults = faults.into_iter();
        Ok(faults.map(|fault| (fault.path, fault.reason)).collect())
    }

    fn __repr__(&self) -> String {
        format!("<perch.Store {}>", self.path.display())
    }
}

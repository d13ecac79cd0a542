// SPDX-License-Identifier: GPL-2.0-or-later
//! The store of results.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use perch_experiment::{Key, MODEL, Stored};
use pyo3::prelude::*;

use crate::error::{of_argument, of_experiment};
use crate::rows::{Rows, schema};

/// The results of which a part of the rows consists: some 100 kB, and 10 rows each or more.
const RESULTS_AT_ONCE: usize = 256;

/// A folder of results (docs/sweeps.md).
#[pyclass(module = "perch", frozen)]
pub struct Store {
    store: perch_experiment::Store,
    path: PathBuf,
}

#[pymethods]
impl Store {
    /// Opens the store in a folder, and makes it where nothing is.
    #[new]
    fn new(path: PathBuf) -> PyResult<Store> {
        let store = perch_experiment::Store::open(&path).map_err(of_experiment)?;
        Ok(Store { store, path })
    }

    /// The folder.
    #[getter]
    fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Returns the keys of all results, sorted.
    fn keys(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let keys = py.detach(|| self.store.keys()).map_err(of_experiment)?;
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
            self.store.put(&again).map_err(of_experiment)?;
            Ok(key.to_string())
        })
    }

    /// Returns the files that are not as the store wrote them, and what is wrong with each.
    fn verify(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let faults = py.detach(|| self.store.verify()).map_err(of_experiment)?;
        let faults = faults.into_iter();
        Ok(faults.map(|fault| (fault.path, fault.reason)).collect())
    }

    /// Returns the scores of all results, one row for each score and repetition, in the columns of
    /// `perch store export`. A score that nothing was counted for is null.
    fn rows(&self) -> Rows {
        let path = self.path.clone();
        Rows::new(path.display().to_string(), columns(), move || {
            let store = perch_experiment::Store::existing(&path).map_err(of_experiment)?;
            let keys = store.keys().map_err(of_experiment)?;
            let mut keys = keys.into_iter();
            Ok(Box::new(move || read(&store, &mut keys)))
        })
    }

    /// Writes [`Store::rows`] to a Parquet file with pyarrow. The file appears whole or not at all.
    #[expect(clippy::needless_pass_by_value, reason = "Python hands over its arguments")]
    fn to_parquet(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let write = py.import("perch._parquet")?.getattr("write")?;
        write.call1((self.rows(), Path::new(&path))).map(drop)
    }

    fn __repr__(&self) -> String {
        format!("<perch.Store {}>", self.path.display())
    }
}

fn columns() -> SchemaRef {
    use DataType::{Boolean, Float64, UInt32, UInt64, Utf8};
    schema(&[
        ("key", Utf8, false),
        ("machine", Utf8, false),
        ("changed", Utf8, false),
        ("workload", Utf8, false),
        ("era", Utf8, false),
        ("modes", Utf8, false),
        ("seed", UInt64, false),
        ("repetition", UInt32, false),
        ("score", Utf8, false),
        ("unit", Utf8, false),
        ("higher_is_better", Boolean, false),
        ("value", Float64, true),
    ])
}

/// Reads the next results.
fn read(
    store: &perch_experiment::Store,
    keys: &mut impl Iterator<Item = Key>,
) -> Result<Option<RecordBatch>, ArrowError> {
    let mut found = Vec::new();
    for key in keys {
        let stored = store.get(&key);
        // Somebody may prune the store meanwhile.
        found.extend(stored.map_err(|error| ArrowError::ExternalError(Box::new(error)))?);
        if found.len() == RESULTS_AT_ONCE {
            break;
        }
    }
    if found.is_empty() {
        return Ok(None);
    }
    let changed: Vec<String> = found.iter().map(changed).collect();
    let results = found.iter().zip(&changed);
    let rows: Vec<_> = results
        .flat_map(|(stored, changed)| {
            let scores = stored.result.scores.iter();
            scores.flat_map(move |score| {
                let values = score.values.iter().enumerate();
                values.map(move |(at, value)| (stored, changed, score, at, value))
            })
        })
        .collect();
    let texts = |text: fn(&Stored) -> &str| -> ArrayRef {
        let values = rows.iter().map(|(stored, ..)| text(stored));
        Arc::new(StringArray::from_iter_values(values))
    };
    let columns: Vec<ArrayRef> = vec![
        texts(|stored| stored.key.as_str()),
        texts(|stored| match stored.simulation.machine.as_str() {
            "" => "machine_toml",
            name => name,
        }),
        Arc::new(StringArray::from_iter_values(
            rows.iter().map(|(_, changed, ..)| changed.as_str()),
        )),
        texts(|stored| &stored.simulation.workload),
        texts(|stored| &stored.simulation.era),
        texts(|stored| &stored.simulation.modes),
        Arc::new(UInt64Array::from_iter_values(
            rows.iter().map(|(stored, ..)| stored.simulation.seed),
        )),
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|(_, _, _, at, _)| *at as u32))),
        Arc::new(StringArray::from_iter_values(
            rows.iter().map(|(_, _, score, ..)| score.name.as_str()),
        )),
        Arc::new(StringArray::from_iter_values(
            rows.iter().map(|(_, _, score, ..)| score.unit.as_str()),
        )),
        Arc::new(BooleanArray::from_iter(
            (rows.iter()).map(|(_, _, score, ..)| Some(score.higher_is_better)),
        )),
        Arc::new(Float64Array::from_iter(
            (rows.iter()).map(|(.., value)| Some(**value).filter(|value| !value.is_nan())),
        )),
    ];
    RecordBatch::try_new(self::columns(), columns).map(Some)
}

/// Returns the changed values of a simulation's machine, as `perch store export` prints them.
fn changed(stored: &Stored) -> String {
    let changed = stored.simulation.changed.iter();
    let changed: Vec<String> = changed.map(|(key, value)| format!("{key}={value}")).collect();
    changed.join(" ")
}

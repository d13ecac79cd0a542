// SPDX-License-Identifier: GPL-2.0-or-later
//! Sweeps: many simulations into a store.

use std::path::PathBuf;

use perch_experiment::{Advance, ExperimentError, Limits, Prepared, Shard, Store, SweepRow};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{of_argument, of_experiment};
use crate::table::{Columns, Table};
use crate::threads;

/// A sweep: one simulation, and axes along which it varies (docs/sweeps.md).
#[pyclass(module = "perch", frozen)]
pub struct Sweep {
    sweep: perch_experiment::Sweep,
    origin: String,
}

#[pymethods]
impl Sweep {
    /// Reads the sweep in a file.
    #[staticmethod]
    #[pyo3(signature = (path, allow_scx=false))]
    #[expect(clippy::needless_pass_by_value, reason = "Python hands over its arguments")]
    fn from_file(path: PathBuf, allow_scx: bool) -> PyResult<Sweep> {
        let sweep = perch_experiment::Sweep::from_file(&path).map_err(of_experiment)?;
        Ok(Sweep::new(sweep, &path.display().to_string(), allow_scx))
    }

    /// Reads a sweep; `origin` is its name in errors.
    #[staticmethod]
    #[pyo3(signature = (text, origin="sweep", allow_scx=false))]
    fn from_toml(text: &str, origin: &str, allow_scx: bool) -> PyResult<Sweep> {
        let sweep = perch_experiment::Sweep::from_toml(text, origin).map_err(of_experiment)?;
        Ok(Sweep::new(sweep, origin, allow_scx))
    }

    /// The names of the axes.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.sweep.names().into_iter().map(str::to_string).collect()
    }

    /// Returns the simulations of a part of the sweep, each once: the key, and the JSON that
    /// `perch.simulate_json` takes. All of the sweep's simulations are checked first.
    #[pyo3(signature = (shard="1/1"))]
    fn specs(&self, py: Python<'_>, shard: &str) -> PyResult<Vec<(String, String)>> {
        let simulations = self.simulations(py, shard)?;
        Ok(simulations.iter().map(spec).collect())
    }

    /// Returns those of [`Sweep::specs`] whose results the store does not have.
    #[pyo3(signature = (store, shard="1/1"))]
    fn missing(
        &self,
        py: Python<'_>,
        store: PathBuf,
        shard: &str,
    ) -> PyResult<Vec<(String, String)>> {
        let simulations = self.simulations(py, shard)?;
        let missing = || Store::open(&store)?.lacks(&simulations);
        let missing = py.detach(missing).map_err(of_experiment)?;
        Ok(missing.into_iter().map(spec).collect())
    }

    /// Simulates what of a part of the sweep the store does not have, and keeps each result as soon
    /// as it is there. Returns the numbers of simulations: all, had, made; and failed, the messages
    /// of those that failed. `progress` is called with the number done and the number to do.
    #[pyo3(signature = (store, jobs=None, shard="1/1", progress=None))]
    #[expect(clippy::needless_pass_by_value, reason = "Python hands over its arguments")]
    fn run<'py>(
        &self,
        py: Python<'py>,
        store: PathBuf,
        jobs: Option<usize>,
        shard: &str,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let shard = part(shard)?;
        let progress = progress.map(Bound::unbind);
        let mut told = 0;
        let mut advance = |Advance { done, all, .. }: Advance| {
            Python::attach(|py| {
                py.check_signals()?;
                match &progress {
                    Some(progress) if done > told => progress.call1(py, (done, all)).map(drop)?,
                    _ => {}
                }
                told = done;
                Ok::<_, Stop>(())
            })
        };
        let run = || self.sweep.run(&store, shard, threads(jobs), &mut advance);
        let found = py.detach(run).map_err(|Stop(error)| error)?;
        let done = PyDict::new(py);
        done.set_item("all", found.all)?;
        done.set_item("had", found.had)?;
        done.set_item("made", found.made)?;
        done.set_item("failed", found.failed)?;
        Ok(done)
    }

    /// Returns the table of all results that the store has, as `perch sweep collect` prints it.
    #[expect(clippy::needless_pass_by_value, reason = "Python hands over its arguments")]
    fn table(&self, py: Python<'_>, store: PathBuf) -> PyResult<Table> {
        let collect = || self.sweep.collect(&Store::existing(&store)?);
        let (rows, _) = py.detach(collect).map_err(of_experiment)?;
        Ok(table(&self.sweep.names(), &rows))
    }

    fn __repr__(&self) -> String {
        let names = self.sweep.names().join(", ");
        format!("<perch.Sweep {} over {names}>", self.origin)
    }
}

impl Sweep {
    fn new(sweep: perch_experiment::Sweep, origin: &str, allow_scx: bool) -> Sweep {
        let limits = Limits { allow_scx, ..Limits::default() };
        Sweep { sweep: sweep.within(limits), origin: origin.to_string() }
    }

    fn simulations(&self, py: Python<'_>, shard: &str) -> PyResult<Vec<Prepared>> {
        let shard = part(shard)?;
        py.detach(|| self.sweep.simulations(shard)).map_err(of_experiment)
    }
}

fn spec(prepared: &Prepared) -> (String, String) {
    let asked = serde_json::to_string(&prepared.asked).expect("texts and numbers");
    (prepared.key.to_string(), asked)
}

fn part(shard: &str) -> PyResult<Shard> {
    let refused = |reason| of_argument(format!("shard {shard}: {reason}"));
    shard.parse().map_err(refused)
}

/// The reason why a sweep stopped, as Python is to hear it.
struct Stop(PyErr);

impl From<PyErr> for Stop {
    fn from(error: PyErr) -> Stop {
        Stop(error)
    }
}

impl From<ExperimentError> for Stop {
    fn from(error: ExperimentError) -> Stop {
        Stop(of_experiment(error))
    }
}

/// Returns the table, with the columns of `perch sweep collect --format csv`.
fn table(names: &[&str], rows: &[SweepRow]) -> Table {
    let mut columns = Columns::default();
    for name in names {
        columns.values(name, rows.iter().map(move |row| &row.point[*name]));
    }
    columns.texts("score", rows.iter().map(|row| row.score.as_str()));
    columns.texts("unit", rows.iter().map(|row| row.unit.as_str()));
    let better = rows.iter().map(|row| row.higher_is_better);
    columns.truths("higher_is_better", better);
    let repetitions = rows.iter().map(|row| row.repetitions as i64);
    columns.integers("repetitions", repetitions);
    columns.numbers("mean", rows.iter().map(|row| Some(row.mean)));
    columns.numbers("ci95", rows.iter().map(|row| row.ci95));
    let settled = rows.iter().map(|row| row.settled);
    columns.truths("settled", settled);
    let why = rows.iter().map(|row| row.why_not_settled.as_deref().unwrap_or_default());
    columns.texts("why_not_settled", why);
    columns.numbers("change_pct", rows.iter().map(|row| row.change_pct));
    columns.numbers("change_ci95_pct", rows.iter().map(|row| row.change_ci95_pct));
    columns.table()
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Sweeps: many simulations into a store.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use perch_sweep::{Prepared, Row, Shard, Store, Stored, SweepError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{of_argument, of_sweep};
use crate::table::{Columns, Table};
use crate::threads;

/// The time between two looks whether the user wants the sweep to stop.
const INTERRUPT: Duration = Duration::from_millis(100);

/// A sweep: one simulation, and axes along which it varies (docs/sweeps.md).
#[pyclass(module = "perch", frozen)]
pub struct Sweep {
    sweep: perch_sweep::Sweep,
    origin: String,
}

/// The end of one simulation: kept, failed, or not to be kept.
enum End {
    Kept,
    Failed(usize, String),
    Lost(SweepError),
}

#[pymethods]
impl Sweep {
    /// Reads the sweep in a file.
    #[staticmethod]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "Python hands over its arguments"
    )]
    fn from_file(path: PathBuf) -> PyResult<Sweep> {
        let sweep = perch_sweep::Sweep::from_file(&path).map_err(of_sweep)?;
        let origin = path.display().to_string();
        Ok(Sweep { sweep, origin })
    }

    /// Reads a sweep; `origin` is its name in errors.
    #[staticmethod]
    #[pyo3(signature = (text, origin="sweep"))]
    fn from_toml(text: &str, origin: &str) -> PyResult<Sweep> {
        let sweep = perch_sweep::Sweep::from_toml(text, origin).map_err(of_sweep)?;
        let origin = origin.to_string();
        Ok(Sweep { sweep, origin })
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
        let (_, missing) = py
            .detach(|| missing(&store, &simulations))
            .map_err(of_sweep)?;
        Ok(missing.into_iter().map(spec).collect())
    }

    /// Simulates what of a part of the sweep the store does not have, and keeps each result as soon
    /// as it is there. Returns the numbers of simulations: all, had, made; and failed, the messages
    /// of those that failed. `progress` is called with the number done and the number to do.
    #[pyo3(signature = (store, jobs=None, shard="1/1", progress=None))]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "Python hands over its arguments"
    )]
    fn run<'py>(
        &self,
        py: Python<'py>,
        store: PathBuf,
        jobs: Option<usize>,
        shard: &str,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let simulations = self.simulations(py, shard)?;
        let (store, missing) = py
            .detach(|| missing(&store, &simulations))
            .map_err(of_sweep)?;
        let progress = progress.map(Bound::unbind);
        let advance = |done: usize| {
            Python::attach(|py| {
                py.check_signals()?;
                match &progress {
                    Some(progress) if done > 0 => {
                        progress.call1(py, (done, missing.len())).map(drop)
                    }
                    _ => Ok(()),
                }
            })
        };
        let failed = py.detach(|| pool(&store, &missing, threads(jobs), &advance))?;
        let done = PyDict::new(py);
        done.set_item("all", simulations.len())?;
        done.set_item("had", simulations.len() - missing.len())?;
        done.set_item("made", missing.len() - failed.len())?;
        done.set_item("failed", failed)?;
        Ok(done)
    }

    /// Returns the table of all results that the store has, as `perch sweep collect` prints it.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "Python hands over its arguments"
    )]
    fn table(&self, py: Python<'_>, store: PathBuf) -> PyResult<Table> {
        let collect = || self.sweep.collect(&Store::existing(&store)?);
        let (rows, _) = py.detach(collect).map_err(of_sweep)?;
        Ok(table(&self.sweep.names(), &rows))
    }

    fn __repr__(&self) -> String {
        let names = self.sweep.names().join(", ");
        format!("<perch.Sweep {} over {names}>", self.origin)
    }
}

impl Sweep {
    fn simulations(&self, py: Python<'_>, shard: &str) -> PyResult<Vec<Prepared>> {
        let shard: Shard = shard
            .parse()
            .map_err(|reason| of_argument(format!("shard {shard}: {reason}")))?;
        py.detach(|| self.sweep.simulations(shard))
            .map_err(of_sweep)
    }
}

fn spec(prepared: &Prepared) -> (String, String) {
    let asked = serde_json::to_string(&prepared.asked).expect("texts and numbers");
    (prepared.key.to_string(), asked)
}

/// Opens the store, and returns the simulations that it does not have.
fn missing<'a>(
    store: &Path,
    simulations: &'a [Prepared],
) -> Result<(Store, Vec<&'a Prepared>), SweepError> {
    let store = Store::open(store)?;
    let there = store.keys()?;
    let missing = simulations.iter();
    let missing = missing.filter(|prepared| !there.contains(&prepared.key));
    let missing = missing.collect();
    Ok((store, missing))
}

/// Simulates on `jobs` threads, and returns the messages of the simulations that failed. This thread
/// waits: it is the interpreter's, which alone hears of Ctrl-C. After an error of `advance` the
/// threads end what they are at.
fn pool(
    store: &Store,
    missing: &[&Prepared],
    jobs: usize,
    advance: &dyn Fn(usize) -> PyResult<()>,
) -> PyResult<Vec<String>> {
    let next = AtomicUsize::new(0);
    let stop = || next.store(missing.len(), Ordering::Relaxed);
    let worker = |ended: SyncSender<End>| {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(prepared) = missing.get(place) else {
                return;
            };
            let end = match prepared.run() {
                Err(error) => End::Failed(place, error.to_string()),
                Ok(found) => {
                    let asked = prepared.asked.clone();
                    let kept = store.put(&Stored::new(prepared.key.clone(), asked, found));
                    kept.map_or_else(End::Lost, |()| End::Kept)
                }
            };
            if ended.send(end).is_err() {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        // Bounded, so that an error of `advance` stops threads that are faster than this one.
        let (ended, ends) = sync_channel(jobs);
        for _ in 0..jobs.min(missing.len()) {
            let ended = ended.clone();
            let worker = &worker;
            scope.spawn(move || worker(ended));
        }
        drop(ended);
        let mut failed = Vec::new();
        let mut done = 0;
        loop {
            let advanced = match ends.recv_timeout(INTERRUPT) {
                Ok(End::Lost(error)) => Err(of_sweep(error)),
                Ok(end) => {
                    if let End::Failed(place, message) = end {
                        failed.push((place, message));
                    }
                    done += 1;
                    advance(done)
                }
                Err(RecvTimeoutError::Timeout) => advance(0),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if let Err(error) = advanced {
                stop();
                return Err(error);
            }
        }
        failed.sort();
        Ok(failed.into_iter().map(|(_, message)| message).collect())
    })
}

/// Returns the table, with the columns of `perch sweep collect --format csv`.
fn table(names: &[&str], rows: &[Row]) -> Table {
    let mut columns = Columns::default();
    for (at, name) in names.iter().enumerate() {
        columns.values(name, rows.iter().map(move |row| &row.point[at]));
    }
    columns.texts("score", rows.iter().map(|row| row.score.as_str()));
    columns.texts("unit", rows.iter().map(|row| row.unit.as_str()));
    let better = rows.iter().map(|row| row.higher_is_better);
    columns.truths("higher_is_better", better);
    let repetitions = rows.iter().map(|row| row.repetitions as i64);
    columns.integers("repetitions", repetitions);
    columns.numbers("mean", rows.iter().map(|row| Some(row.mean)));
    columns.numbers("ci95", rows.iter().map(|row| row.ci95));
    columns.truths("settled", rows.iter().map(|row| row.is_settled));
    columns.numbers("change_pct", rows.iter().map(|row| row.change_pct));
    columns.numbers(
        "change_ci95_pct",
        rows.iter().map(|row| row.change_ci95_pct),
    );
    columns.table()
}

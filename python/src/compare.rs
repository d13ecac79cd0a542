// SPDX-License-Identifier: GPL-2.0-or-later
//! Comparisons: arms on one workload, side by side.

use std::sync::Arc;

use perch_experiment::{Arm, CompareSpec, Plan, Times};
use perch_policy::{Era, Topology};
use perch_report::Format;
use perch_sim::RootDomain;
use perch_workload::Budget;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{of_argument, of_experiment, of_machine};
use crate::table::{Columns, Table};
use crate::threads;

/// The result of a comparison.
#[pyclass(module = "perch", frozen)]
pub struct Comparison(perch_experiment::Comparison);

#[pymethods]
impl Comparison {
    /// The comparison as `perch compare --format json` prints it.
    #[getter]
    fn json(&self) -> String {
        perch_report::comparison(&self.0, Format::Json)
    }

    /// Returns the scores: a row for each score and arm.
    fn table(&self) -> Table {
        let rows = || {
            let scores = self.0.scores.iter();
            scores.flat_map(|score| score.arms.iter().map(move |arm| (score, arm)))
        };
        let mut columns = Columns::default();
        columns.texts("score", rows().map(|(score, _)| score.name.as_str()));
        columns.texts("unit", rows().map(|(score, _)| score.unit.as_str()));
        let better = rows().map(|(score, _)| score.higher_is_better);
        columns.truths("higher_is_better", better);
        columns.texts("arm", rows().map(|(_, arm)| arm.arm.as_str()));
        columns.numbers("mean", rows().map(|(_, arm)| Some(arm.mean)));
        columns.numbers("ci95", rows().map(|(_, arm)| arm.ci95));
        let settled = rows().map(|(_, arm)| self.0.unsettled(arm).is_none());
        columns.truths("settled", settled);
        columns.numbers("change_pct", rows().map(|(_, arm)| Some(arm.delta_pct)));
        let half = rows().map(|(_, arm)| arm.delta_ci95_pct);
        columns.numbers("change_ci95_pct", half);
        columns.table()
    }

    /// Draws the scores by arm with matplotlib, and returns the figure.
    #[pyo3(signature = (score=None, **kwargs))]
    fn plot<'py>(
        slf: &Bound<'py, Comparison>,
        score: Option<&str>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let module = slf.py().import("perch._plot")?;
        let comparison = module.getattr("comparison")?;
        comparison.call((slf, score), kwargs)
    }

    /// The comparison as `perch compare` prints it.
    fn __str__(&self) -> String {
        perch_report::comparison(&self.0, Format::Table)
    }

    fn __repr__(&self) -> String {
        let arms: Vec<&str> = self.0.arms.iter().map(|arm| arm.name.as_str()).collect();
        format!(
            "<perch.Comparison of {} on {}: {}>",
            self.0.workload,
            self.0.machine,
            arms.join(", ")
        )
    }
}

/// Compares arms on a workload and a machine, as `perch compare` does. `effort` is JSON here.
#[pyfunction]
#[pyo3(signature = (machine, workload, arms, era, effort, seed, jobs, hz, root_domain))]
#[expect(clippy::too_many_arguments, reason = "perch.compare names them")]
pub fn compare(
    py: Python<'_>,
    machine: &str,
    workload: &str,
    arms: Vec<(String, String)>,
    era: &str,
    effort: &str,
    seed: u64,
    jobs: Option<usize>,
    hz: u32,
    root_domain: &str,
) -> PyResult<Comparison> {
    let era: Era = (era.parse()).map_err(|error| of_argument(format!("era: {error}")))?;
    let arms = arms.into_iter().map(|words| arm(words, era)).collect::<PyResult<_>>()?;
    let root_domain: RootDomain =
        (root_domain.parse()).map_err(|error| of_argument(format!("root_domain: {error}")))?;
    let machine = Arc::new(perch_machine::resolve(machine).map_err(of_machine)?);
    let spec = CompareSpec {
        topology: Topology::new(&machine),
        machine,
        era,
        hz,
        root_domain,
        workload: workload.to_string(),
        arms,
        plan: plan(effort)?,
        statistics: false,
        seed,
        jobs: threads(jobs),
        budget: Budget::DEFAULT,
    };
    let found = py.detach(|| perch_experiment::compare(&spec, &mut |_, _| {}));
    Ok(Comparison(found.map_err(of_experiment)?))
}

fn arm((name, modes): (String, String), era: Era) -> PyResult<Arm> {
    Arm::new(&name, &modes, era).map_err(|why| of_argument(format!("arm `{name}`: {why}")))
}

fn plan(effort: &str) -> PyResult<Plan> {
    let times: Times = serde_json::from_str(effort).map_err(|_| {
        of_argument(format!(
            "effort {effort}: expected quick, normal, full, or warmup_ms, measure_ms and repetitions"
        ))
    })?;
    Ok(times.plan())
}

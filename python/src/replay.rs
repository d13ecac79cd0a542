// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch replay` as a function: the model's agreement with a recorded kernel, and what other modes
//! would change. A test compares the result with the program's JSON.

use std::collections::BTreeMap;
use std::path::PathBuf;

use perch_policy::Policy;
use perch_record::{ReplayResult, change_mode};
use pyo3::prelude::*;

use crate::error::of_argument;
use crate::recording::{Opened, read_era, wrong};
use crate::threads;

/// Changes of a kernel's modes, as Python gives them: `"cluster=posted"` or `{"cluster": "posted"}`.
#[derive(FromPyObject)]
pub enum Changes {
    /// As `perch replay --set` takes them.
    Text(String),
    /// The modes by mechanism.
    ByName(BTreeMap<String, String>),
}

impl Changes {
    fn pairs(self) -> Vec<String> {
        match self {
            Changes::Text(text) => text.split(',').map(str::to_string).collect(),
            Changes::ByName(modes) => {
                (modes.into_iter()).map(|(mechanism, mode)| format!("{mechanism}={mode}")).collect()
            }
        }
    }
}

/// Returns the policy with the model's modes and these changes; none without changes.
pub fn other(model: Policy, changes: Option<Changes>) -> PyResult<Option<Policy>> {
    let mut modes = model.modes();
    let pairs = changes.map_or_else(Vec::new, Changes::pairs);
    for pair in &pairs {
        let changed = change_mode(&mut modes, pair);
        changed.map_err(|error| of_argument(format!("modes: `{pair}`: {error}")))?;
    }
    Ok((!pairs.is_empty()).then(|| Policy::new(model.era(), modes)))
}

/// Asks the model of the recorded kernel, and a policy with other modes, about every wake-up of a
/// recording; returns what `perch replay --format json` prints.
#[pyfunction]
#[pyo3(signature = (path, modes=None, *, era=None, jobs=None))]
#[expect(clippy::needless_pass_by_value, reason = "Python hands over its arguments")]
pub fn replay<'py>(
    py: Python<'py>,
    path: PathBuf,
    modes: Option<Changes>,
    era: Option<&str>,
    jobs: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let era = era.map(read_era).transpose()?;
    let mut opened = Opened::interruptible(&path, era)?;
    let other = other(opened.subject.model, modes)?;
    let outcome = py.detach(|| {
        let (reader, topology) = (&mut opened.reader, &opened.subject.topology);
        perch_record::replay(reader, topology, opened.subject.model, other, threads(jobs))
    });
    let outcome = outcome.map_err(wrong(&opened.path))?;
    opened.warn(py)?;
    if outcome.model.asked == 0 {
        return Err(of_argument(format!(
            "{}: {}",
            opened.path,
            perch_record::no_wake_ups(outcome.others)
        )));
    }
    let Opened { path, reader, subject } = &opened;
    let found = ReplayResult::of(path, reader, &subject.topology, subject.model, other, &outcome);
    let text = serde_json::to_string(&found).expect("a result has only text keys");
    py.import("json")?.call_method1("loads", (text,))
}

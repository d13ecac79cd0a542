// SPDX-License-Identifier: GPL-2.0-or-later
//! Results that were read from files. [`Results::parse`] is the only door: behind it, lists by arm
//! have one entry an arm and every figure can be drawn, so that charts and tables need not look.

mod check;

use perch_experiment::{Comparison, Report};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::moved::{HEAD, LineCounts, parse};

/// The results that were read from one file.
#[derive(Clone, Debug)]
pub enum Results {
    /// The output of `perch experiment run --format json`.
    Experiments(Vec<Report>),
    /// The output of `perch compare --format json`.
    Comparison(Box<Comparison>),
    /// The file of `perch lab run --coherence --counts FILE.json`.
    Counts(Box<LineCounts>),
}

impl Results {
    /// Reads results in the form in which the command printed them.
    ///
    /// # Errors
    /// Returns a sentence that says why the text is not such a file, with the line or the key.
    pub fn parse(text: &str) -> Result<Results, String> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
        let has = |key: &str| value.get(key).is_some();
        match &value {
            Value::Array(all) if !all.is_empty() => {
                let reports: Vec<Report> = typed(text, "a list of experiments")?;
                for (at, (report, value)) in reports.iter().zip(all).enumerate() {
                    check::experiment(&format!("[{at}]"), value, report)
                        .map_err(|why| changed("an experiment", &why))?;
                }
                Ok(Results::Experiments(reports))
            }
            _ if has("experiment") => {
                let report: Report = typed(text, "an experiment")?;
                check::experiment("", &value, &report)
                    .map_err(|why| changed("an experiment", &why))?;
                Ok(Results::Experiments(vec![report]))
            }
            _ if has("workload") && has("scores") => {
                let found: Comparison = typed(text, "a comparison")?;
                check::comparison(&value, &found).map_err(|why| changed("a comparison", &why))?;
                Ok(Results::Comparison(Box::new(found)))
            }
            one if has(HEAD.0) => parse(one)
                .map(|found| Results::Counts(Box::new(found)))
                .map_err(|error| format!("is not a file of counts: {error}")),
            _ => Err(
                "is none of `perch experiment run --format json`, `perch compare --format \
                 json` and `perch lab run --coherence --counts FILE.json`"
                    .to_string(),
            ),
        }
    }
}

/// Reads the text again, because only a reader of text knows the line of a mistake.
fn typed<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("is not {what}: {error}"))
}

fn changed(what: &str, why: &str) -> String {
    format!("is not {what} as perch writes it: {why}; write it again with --format json")
}

#[cfg(test)]
mod tests;

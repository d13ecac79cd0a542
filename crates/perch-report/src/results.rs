// SPDX-License-Identifier: GPL-2.0-or-later
//! Results that were read from files. [`Results::parse`] is the only door: behind it, lists by arm
//! have one entry an arm and every figure can be drawn, so that charts and tables need not look.

mod check;

use perch_experiment::{Comparison, Report};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The results that were read from one file.
#[derive(Clone, Debug)]
pub enum Results {
    /// The output of `perch experiment run --format json`.
    Experiments(Vec<Report>),
    /// The output of `perch compare --format json`.
    Comparison(Box<Comparison>),
}

/// The reason why a text holds no results. It follows the file's name.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// Not JSON at all.
    #[error("is not JSON: {0}")]
    Json(serde_json::Error),
    /// JSON, of neither.
    #[error(
        "is neither of `perch experiment run --format json` nor of `perch compare --format json`"
    )]
    Unknown,
    /// A key is missing, or its value has another type.
    #[error("is not {0}: {1}")]
    Type(&'static str, serde_json::Error),
    /// Values of the right types that contradict each other, or that no page can show.
    #[error("is not {0} as perch writes it: {1}; write it again with --format json")]
    Changed(&'static str, Defect),
}

/// A place in a file of results, and what is wrong there.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Defect(String);

impl<T: Into<String>> From<T> for Defect {
    fn from(words: T) -> Defect {
        Defect(words.into())
    }
}

impl Results {
    /// Reads results in the form in which the command printed them.
    ///
    /// # Errors
    /// Says why the text is not such a file, with the line or the key.
    pub fn parse(text: &str) -> Result<Results, ResultsError> {
        let value: Value = serde_json::from_str(text).map_err(ResultsError::Json)?;
        let has = |key: &str| value.get(key).is_some();
        match &value {
            Value::Array(all) if !all.is_empty() => {
                let reports: Vec<Report> = typed(text, "a list of experiments")?;
                for (at, (report, value)) in reports.iter().zip(all).enumerate() {
                    check::experiment(&format!("[{at}]"), value, report)
                        .map_err(|why| ResultsError::Changed("an experiment", why))?;
                }
                Ok(Results::Experiments(reports))
            }
            _ if has("experiment") => {
                let report: Report = typed(text, "an experiment")?;
                check::experiment("", &value, &report)
                    .map_err(|why| ResultsError::Changed("an experiment", why))?;
                Ok(Results::Experiments(vec![report]))
            }
            _ if has("workload") && has("scores") => {
                let found: Comparison = typed(text, "a comparison")?;
                check::comparison(&value, &found)
                    .map_err(|why| ResultsError::Changed("a comparison", why))?;
                Ok(Results::Comparison(Box::new(found)))
            }
            _ => Err(ResultsError::Unknown),
        }
    }
}

/// Reads the text again, because only a reader of text knows the line of a mistake.
fn typed<T: DeserializeOwned>(text: &str, what: &'static str) -> Result<T, ResultsError> {
    serde_json::from_str(text).map_err(|error| ResultsError::Type(what, error))
}

#[cfg(test)]
mod tests;

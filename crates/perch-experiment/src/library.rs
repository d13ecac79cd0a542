// SPDX-License-Identifier: GPL-2.0-only
//! The experiments that perch knows by name: those in experiments/, carried in the program.

use std::path::Path;

use crate::error::ExperimentError;
use crate::model::Experiment;

/// Name, text and figures of every library experiment, in the order of `perch experiment list`.
const EXPERIMENTS: [(&str, &str, &str); 1] = [(
    "cluster-scan",
    include_str!("../../../experiments/cluster-scan.toml"),
    include_str!("../../../experiments/cluster-scan.csv"),
)];

/// The library's names.
pub fn names() -> impl Iterator<Item = &'static str> {
    EXPERIMENTS.iter().map(|(name, _, _)| *name)
}

/// The library experiment of that name, else the one in the file at that path.
///
/// # Errors
/// [`ExperimentError::Unknown`] when it is neither, else as [`Experiment::from_file`].
pub fn resolve(name_or_path: &str) -> Result<Experiment, ExperimentError> {
    if let Some((name, text, figures)) = EXPERIMENTS.iter().find(|(n, _, _)| *n == name_or_path) {
        let origin = format!("experiments/{name}.toml");
        return Experiment::from_toml(text, &origin, &|_| Ok(figures.to_string()));
    }
    let path = Path::new(name_or_path);
    if path.exists() {
        return Experiment::from_file(path);
    }
    Err(ExperimentError::Unknown {
        name: name_or_path.to_string(),
        known: names().collect::<Vec<_>>().join(", "),
    })
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! What `--arm` says: the kernel's own scheduler with mechanisms in it, or another scheduler.

use std::path::Path;

use perch_experiment::{Arm, ExperimentError};
use perch_policy::{Era, Modes};
use perch_scx::Package;

/// Schedulers beside the kernel's own, by the word before what follows `=`.
const OUTSIDE: [&str; 2] = ["live", "scx"];

/// Reads `NAME:MECHANISM=MODE,...`, `[NAME=]live:SETTINGS`, or `[NAME=]scx:FILE`.
///
/// # Errors
/// Returns a sentence that says what was expected.
pub fn parse(text: &str, era: Era) -> Result<Arm, ExperimentError> {
    let outside = OUTSIDE.iter().find_map(|kind| {
        let (name, rest) = match text.split_once(&format!("={kind}:")) {
            Some((name, rest)) if !name.contains([':', ',']) => (Some(name), rest),
            _ => (None, text.strip_prefix(&format!("{kind}:"))?),
        };
        Some((*kind, name, rest))
    });
    let Some((kind, name, rest)) = outside else {
        return Arm::parse(text);
    };
    let refuse = |reason: String| ExperimentError::Argument(format!("--arm {text}: {reason}"));
    if name == Some("") {
        return Err(refuse("the name before `=` is empty".to_string()));
    }
    if era.release() < (6, 12) {
        let reason = format!("Linux {era} has no sched_ext: expected --era 6.12 or newer");
        return Err(refuse(reason));
    }
    let (own_name, scheduler) = match kind {
        "live" => {
            let scheduler = perch_scx::live(rest).map_err(|error| refuse(error.to_string()))?;
            (kind.to_string(), scheduler)
        }
        _ => {
            let package =
                Package::open(Path::new(rest)).map_err(|error| refuse(error.to_string()))?;
            let own_name = package.name.clone();
            let scheduler = package
                .outside(format!("scx:{rest}"))
                .map_err(|error| refuse(error.to_string()))?;
            (own_name, scheduler)
        }
    };
    Ok(Arm {
        name: name.map_or(own_name, str::to_string),
        modes: Modes::default(),
        scheduler: Some(scheduler),
    })
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! What `--arm` says: the kernel's own scheduler with mechanisms in it, or another scheduler.

use perch_experiment::{Arm, ExperimentError};
use perch_policy::{Era, Modes};

/// Reads `NAME:MECHANISM=MODE,...`, or `[NAME=]live:SETTINGS`.
///
/// # Errors
/// Returns a sentence that says what was expected.
pub fn parse(text: &str, era: Era) -> Result<Arm, ExperimentError> {
    let (name, rest) = match text.split_once("=live:") {
        Some((name, rest)) if !name.contains([':', ',']) => (name, Some(rest)),
        _ => ("live", text.strip_prefix("live:")),
    };
    let Some(set) = rest else {
        return Arm::parse(text);
    };
    let refuse = |reason: String| ExperimentError::Argument(format!("--arm {text}: {reason}"));
    if name.is_empty() {
        return Err(refuse("the name before `=` is empty".to_string()));
    }
    if !matches!(era, Era::V6_15 | Era::V7_2) {
        let reason = format!("Linux {era} has no sched_ext: expected --era 6.15 or 7.2");
        return Err(refuse(reason));
    }
    let scheduler = perch_scx::live(set).map_err(|error| refuse(error.to_string()))?;
    Ok(Arm {
        name: name.to_string(),
        modes: Modes::default(),
        scheduler: Some(scheduler),
    })
}

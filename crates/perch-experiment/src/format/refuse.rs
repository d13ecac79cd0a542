// SPDX-License-Identifier: GPL-2.0-or-later
//! An error about one value of an experiment.

use perch_file::Spanned;

use crate::error::{ExperimentError, Source};

/// The error that blames the value `blamed` of `key`.
pub fn refuse<T>(
    source: &Source,
    blamed: &Spanned<T>,
    key: &str,
    reason: &str,
    expected: &str,
) -> ExperimentError {
    source.problem(blamed.span().start, key, reason, expected)
}

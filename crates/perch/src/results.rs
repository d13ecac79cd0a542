// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads files of results.

use std::path::Path;

use perch_file::Kind;
use perch_report::Results;

use crate::output::Failure;

/// Reads results from a file; `-` is stdin.
pub fn results(path: &Path) -> Result<Results, Failure> {
    let text = read(path)?;
    Results::parse(&text).map_err(|why| Failure::input(format!("{} {why}", path.display())))
}

fn read(path: &Path) -> Result<String, Failure> {
    let text = match path.to_str() {
        Some("-") => perch_file::text_of(std::io::stdin(), "stdin", Kind::RESULTS),
        _ => perch_file::text(path, Kind::RESULTS),
    };
    text.map_err(|error| Failure::input(error.to_string()))
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The option `--format` of the benchmarks.

use perch_report::Format;

/// The format that `name` stands for.
pub fn format(name: &str) -> Result<Format, String> {
    name.parse::<Format>().map_err(|error| error.to_string())
}

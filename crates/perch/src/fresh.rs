// SPDX-License-Identifier: GPL-2.0-or-later
//! Output files that appear whole or not at all.

use std::io::Write;
use std::path::Path;

pub use perch_file::Fresh;

use crate::output::Failure;

/// Writes a whole file.
///
/// # Errors
/// Those of [`Fresh::create`] and of writing, in the words for the user.
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let written = Fresh::create(path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.keep()
    });
    written.map_err(|error| Failure::run(format!("cannot write {}: {error}", path.display())))
}

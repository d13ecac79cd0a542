// SPDX-License-Identifier: GPL-2.0-or-later
//! Output files that appear whole or not at all.

use std::io::Write;
use std::path::Path;

use perch_file::Fresh;

use crate::output::Failure;

/// A file that the user may have asked for; begun before the work whose result it takes, so that one
/// that cannot be written is refused first.
pub struct Asked<'a>(Option<(Fresh, &'a Path)>);

impl<'a> Asked<'a> {
    /// Begins the file.
    ///
    /// # Errors
    /// Those of [`Fresh::create`].
    pub fn begin(path: Option<&'a Path>) -> Result<Asked<'a>, Failure> {
        let begin =
            |path: &'a Path| Ok((Fresh::create(path).map_err(|error| cannot(path, &error))?, path));
        path.map(begin).transpose().map(Asked)
    }

    /// Writes the text; false where nobody asked for the file.
    ///
    /// # Errors
    /// Those of writing.
    pub fn finish(self, text: &str) -> Result<bool, Failure> {
        let Some((mut fresh, path)) = self.0 else {
            return Ok(false);
        };
        let written = fresh.write_all(text.as_bytes()).and_then(|()| fresh.keep());
        written.map(|()| true).map_err(|error| cannot(path, &error))
    }
}

/// Writes a whole file.
///
/// # Errors
/// Those of [`Fresh::create`] and of writing, in the words for the user.
#[cfg(feature = "lab")]
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    Asked::begin(Some(path))?.finish(text).map(drop)
}

fn cannot(path: &Path, error: &std::io::Error) -> Failure {
    Failure::run(format!("cannot write {}: {error}", path.display()))
}

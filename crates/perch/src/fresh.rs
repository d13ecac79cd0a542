// SPDX-License-Identifier: GPL-2.0-or-later
//! Output files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

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

/// An output file. It is written beside its place and moved there when it is whole; when the value
/// is dropped before, no file is left. An existing terminal or pipe cannot be replaced, so it is
/// written to directly.
pub enum Fresh {
    /// The unfinished file, and the path that it is to have.
    Beside(NamedTempFile, PathBuf),
    /// A terminal or a pipe, which is written in its place.
    There(File),
}

impl Fresh {
    /// Begins the file for `path`.
    ///
    /// # Errors
    /// When the file cannot be written in that folder, or when the user may not write to the file
    /// that it would replace.
    pub fn create(path: &Path) -> io::Result<Fresh> {
        if let Ok(found) = fs::metadata(path)
            && !found.is_file()
        {
            return Ok(Fresh::There(File::options().write(true).open(path)?));
        }
        // A symbolic link stays: the new file replaces the one that the link leads to.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        if place.exists() {
            // A user who may not write to a file must not replace it either, so this open fails for
            // such a file.
            File::options().append(true).open(&place)?;
        }
        let folder = match place.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut name = place.file_name().unwrap_or_default().to_os_string();
        name.push(".");
        // The library's own errors name the temporary file, whose name the user does not know.
        let mut cause = None;
        let beside = Builder::new()
            .prefix(&name)
            .suffix(".new")
            .make_in(folder, |path| {
                let file = File::options().write(true).create_new(true).open(path);
                file.inspect_err(|error| cause = error.raw_os_error())
            })
            .map_err(|error| cause.map_or(error, io::Error::from_raw_os_error))?;
        Ok(Fresh::Beside(beside, place))
    }

    /// Returns another handle of the file, for a writer that keeps what it is given.
    ///
    /// # Errors
    /// When the process has no handle left.
    pub fn handle(&self) -> io::Result<File> {
        match self {
            Fresh::Beside(file, _) => file.as_file().try_clone(),
            Fresh::There(file) => file.try_clone(),
        }
    }

    /// Moves the file, now whole, to its place.
    ///
    /// # Errors
    /// When the file cannot be moved.
    pub fn keep(self) -> io::Result<()> {
        match self {
            Fresh::Beside(mut file, place) => {
                file.flush()?;
                file.persist(place).map(drop).map_err(|error| error.error)
            }
            Fresh::There(mut file) => file.flush(),
        }
    }
}

impl Write for Fresh {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Fresh::Beside(file, _) => file.write(bytes),
            Fresh::There(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Fresh::Beside(file, _) => file.flush(),
            Fresh::There(file) => file.flush(),
        }
    }
}

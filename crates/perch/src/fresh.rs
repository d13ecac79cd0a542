// SPDX-License-Identifier: GPL-2.0-or-later
//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// A file that is written beside its place and moved there when it is whole; one that is dropped
/// before leaves nothing. What is there already and is no plain file (a terminal, a pipe) is
/// written to.
pub enum Fresh {
    /// Not whole yet, and where it is to be.
    Beside(NamedTempFile, PathBuf),
    /// Written in its place.
    There(File),
}

impl Fresh {
    /// Begins one.
    ///
    /// # Errors
    /// When it cannot be written there, or not be moved to a place that it may not replace.
    pub fn create(path: &Path) -> io::Result<Fresh> {
        if let Ok(found) = fs::metadata(path)
            && !found.is_file()
        {
            return Ok(Fresh::There(File::options().write(true).open(path)?));
        }
        // Through a link to the file itself, which the link goes on to lead to.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        if place.exists() {
            // Who may not write to a file is not to replace it either.
            File::options().append(true).open(&place)?;
        }
        let folder = match place.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut name = place.file_name().unwrap_or_default().to_os_string();
        name.push(".");
        // The library's own errors name the file beside, which nobody asked for.
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

    /// It is whole: moves it to its place.
    ///
    /// # Errors
    /// When it cannot be moved.
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

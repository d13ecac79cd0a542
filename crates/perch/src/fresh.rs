// SPDX-License-Identifier: GPL-2.0-or-later
//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that is written beside its place and moved there when it is whole; one that is dropped
/// before leaves nothing. What is there already and is no plain file (a terminal, a pipe) is
/// written to.
pub struct Fresh {
    file: File,
    /// Where it is, and where it is to be; nothing where it is written in its place.
    moves: Option<(PathBuf, PathBuf)>,
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
            let file = File::options().write(true).open(path)?;
            return Ok(Fresh { file, moves: None });
        }
        // Through a link to the file itself, which the link goes on to lead to.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        if place.exists() {
            // Who may not write to a file is not to replace it either.
            File::options().append(true).open(&place)?;
        }
        let mut beside = place.clone().into_os_string();
        beside.push(".new");
        let beside = PathBuf::from(beside);
        let file = File::create(&beside)?;
        Ok(Fresh {
            file,
            moves: Some((beside, place)),
        })
    }

    /// It is whole: moves it to its place.
    ///
    /// # Errors
    /// When it cannot be moved.
    pub fn keep(mut self) -> io::Result<()> {
        self.file.flush()?;
        if let Some((beside, place)) = self.moves.take() {
            let moved = fs::rename(&beside, &place);
            if moved.is_err() {
                let _ = fs::remove_file(&beside);
            }
            return moved;
        }
        Ok(())
    }
}

impl Write for Fresh {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if let Some((beside, _)) = &self.moves {
            let _ = fs::remove_file(beside);
        }
    }
}

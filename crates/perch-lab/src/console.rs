// SPDX-License-Identifier: GPL-2.0-or-later
//! What a guest's kernel writes to its console.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::MemfdFlags;

use crate::error::{Error, Result};

/// The most of a console that is looked at, from its end: 4 MB is some 50,000 lines.
const KEPT: u64 = 4 << 20;

/// A file that QEMU writes the console to. A file and no pipe: a guest never waits for somebody
/// to read it, so that reading it cannot disturb a deterministic guest.
#[derive(Debug)]
pub(crate) struct Console(File);

impl Console {
    /// At `path`, or in memory.
    ///
    /// # Errors
    /// [`Error::File`] when the file cannot be made.
    pub fn new(path: Option<&Path>) -> Result<Console> {
        let file = match path {
            Some(path) => File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(path)
                .map_err(Error::file("write", path))?,
            None => scratch("perch-console")?,
        };
        Ok(Console(file))
    }

    /// What QEMU writes to.
    pub fn file(&self) -> &File {
        &self.0
    }

    /// What was written so far, or its end when that is long.
    pub fn text(&self) -> String {
        written(&self.0).replace('\r', "")
    }

    /// The last `count` lines with something in them.
    pub fn tail(&self, count: usize) -> String {
        let text = self.text();
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        lines[lines.len().saturating_sub(count)..].join("\n")
    }
}

/// What stands in a file that somebody else writes to, or its end when that is long; where the
/// writer is stays as it is.
pub(crate) fn written(file: &File) -> String {
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let start = length.saturating_sub(KEPT);
    let mut bytes = vec![0; (length - start) as usize];
    // It cannot shrink; what cannot be read stays empty, for this is only ever shown.
    let _ = file.read_exact_at(&mut bytes, start);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A file in memory, gone when nobody has it open: nothing to remove when this process is killed.
pub(crate) fn scratch(name: &str) -> Result<File> {
    match rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC) {
        Ok(file) => Ok(File::from(file)),
        Err(error) => Err(Error::File {
            doing: "make",
            path: name.into(),
            source: error.into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn the_tail_is_of_lines_that_say_something() {
        let console = Console::new(None).unwrap();
        assert_eq!(console.tail(3), "");
        write!(console.file(), "one\r\ntwo\r\n\r\nthree\r\n  \r\nfo").unwrap();
        assert_eq!(console.tail(2), "three\nfo");
        assert_eq!(console.tail(9), "one\ntwo\nthree\nfo");
    }
}

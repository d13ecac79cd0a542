// SPDX-License-Identifier: GPL-2.0-or-later
//! A guest's console, to which its kernel writes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::MemfdFlags;

use crate::error::{Error, Result};

/// The most bytes of a console that perch reads, counted from its end: 4 MB is some 50,000 lines.
const KEPT: u64 = 4 << 20;

/// The file that QEMU writes the console to. It is a file and no pipe, because a guest never waits
/// for a file's reader; so reading it cannot disturb a deterministic guest.
#[derive(Debug)]
pub(crate) struct Console(File);

impl Console {
    /// A console in a file at `path`, or in memory without one.
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

    /// The file that QEMU is to write to.
    pub fn file(&self) -> &File {
        &self.0
    }

    /// The console's text so far; of a text longer than [`KEPT`] only the end.
    pub fn text(&self) -> String {
        written(&self.0).replace('\r', "")
    }

    /// The last `count` lines that are not blank.
    pub fn tail(&self, count: usize) -> String {
        let text = self.text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(count)..].join("\n")
    }
}

/// The text of a file that another process writes to; of a text longer than [`KEPT`] only the end.
/// The writer's position in the file stays as it is.
pub(crate) fn written(file: &File) -> String {
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let start = length.saturating_sub(KEPT);
    let mut bytes = vec![0; (length - start) as usize];
    // The file cannot shrink. A part that cannot be read stays zero, since perch only shows the
    // text.
    let _ = file.read_exact_at(&mut bytes, start);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A file in memory. It is gone when no process has it open, so nothing is left to remove when this
/// process is killed.
pub(crate) fn scratch(name: &str) -> Result<File> {
    match rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC) {
        Ok(file) => Ok(File::from(file)),
        Err(error) => Err(Error::File { doing: "make", path: name.into(), source: error.into() }),
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

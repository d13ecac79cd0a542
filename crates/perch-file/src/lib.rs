// SPDX-License-Identifier: GPL-2.0-or-later
//! The one reader of files that perch takes whole, the one door to files that it reads piece by
//! piece, and the one writer ([`Fresh`]). The reader takes regular files and pipes, and no more bytes than a file of the kind can have: a
//! device such as /dev/zero has no end, and would fill the memory. [`Spanned`] is a value of such a
//! file with its place.

mod fresh;
mod schema;
mod spanned;

use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use rustix::fs::OFlags;

pub use fresh::Fresh;
pub use schema::result_schema;
pub use spanned::Spanned;

/// A kind of file: its name, and the most bytes that such a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    name: &'static str,
    most_bytes: u64,
    /// True where a pipe may have it, too.
    piped: bool,
}

/// Mebibytes.
const MIB: u64 = 1 << 20;

impl Kind {
    /// A machine in TOML. 8192 CPUs, the most that a machine may have, take less than 1 MiB.
    pub const MACHINE: Kind = Kind::new("a machine", 16 * MIB);
    /// A machine in the XML of hwloc, which tells some 2 KiB of each CPU, or the text of lscpu.
    pub const TOPOLOGY: Kind = Kind::new("hwloc's XML or lscpu's text", 64 * MIB);
    /// A file of sysfs, which the kernel keeps below a page but for lists of CPUs.
    pub const SYSFS: Kind = Kind::new("a file of sysfs", MIB);
    /// An experiment in TOML.
    pub const EXPERIMENT: Kind = Kind::new("an experiment", 4 * MIB);
    /// The published figures of an experiment in CSV.
    pub const FIGURES: Kind = Kind::new("published figures", 4 * MIB).lying();
    /// The configuration of the live scheduler.
    pub const CONFIGURATION: Kind = Kind::new("a configuration", MIB);
    /// A workload of rt-app in JSON.
    pub const RT_APP: Kind = Kind::new("a file of rt-app", 16 * MIB);
    /// Results, or counts of lines, in JSON. Counts have a record for each function and distance.
    pub const RESULTS: Kind = Kind::new("results", 256 * MIB);
    /// A result in a store.
    pub const STORED: Kind = Kind::new("a store's result", 256 * MIB).lying();
    /// A scheduler of sched_ext, as source or as `perch scx build` writes it.
    pub const SCHEDULER: Kind = Kind::new("a scheduler", 256 * MIB).lying();
    /// A kernel, or a file system for a guest.
    pub const KERNEL: Kind = Kind::new("a kernel", 1024 * MIB).lying();
    /// A kernel's configuration.
    pub const KERNEL_CONFIG: Kind = Kind::new("a kernel's configuration", 16 * MIB);

    const fn new(name: &'static str, most_bytes: u64) -> Kind {
        Kind { name, most_bytes, piped: true }
    }

    /// A kind that lies in a folder of its own kind, where a pipe would keep perch waiting.
    const fn lying(self) -> Kind {
        Kind { piped: false, ..self }
    }

    /// Returns the kind's name, as in "expected NAME".
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Returns the most bytes that a file of the kind has.
    pub const fn most_bytes(self) -> u64 {
        self.most_bytes
    }
}

/// The reason why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system could not open or read the file.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file's name.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The name leads to something else than a file.
    #[error("cannot read {path}: it is {found}; expected {expected}")]
    NoFile {
        /// The name.
        path: String,
        /// The thing that is there.
        found: &'static str,
        /// What may be there.
        expected: &'static str,
    },
    /// The file is larger than any of its kind.
    #[error(
        "cannot read {path}: it has more than {} MiB, the most that perch reads of {}; \
         check that it is the file that you mean", .kind.most_bytes / MIB, .kind.name
    )]
    TooLarge {
        /// The file's name.
        path: String,
        /// The kind of file that was expected.
        kind: Kind,
    },
    /// The file is not text.
    #[error("{path}:{line}: byte {byte} of the line is not UTF-8; expected {}, which is text", .kind.name)]
    NoText {
        /// The file's name.
        path: String,
        /// The line, from 1.
        line: usize,
        /// The place in the line, from 1.
        byte: usize,
        /// The kind of file that was expected.
        kind: Kind,
    },
}

/// Opens a regular file or a pipe, to be read piece by piece.
///
/// # Errors
/// When the name leads to something else, such as a directory or a device, or the system refuses.
pub fn open(path: &Path) -> Result<File, FileError> {
    open_as(path, true)
}

fn open_as(path: &Path, piped: bool) -> Result<File, FileError> {
    let failed = |source| FileError::Io { path: path.display().to_string(), source };
    // Only to open a device may have an effect, so this looks before it opens, too.
    check(path, piped, &std::fs::metadata(path).map_err(failed)?)?;
    let mut options = File::options();
    if !piped {
        options.custom_flags(OFlags::NONBLOCK.bits() as i32);
    }
    let file = options.read(true).open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    check(path, piped, &found)?;
    if found.is_file() {
        if fresh::is_written(identity(&found)) {
            let why = "perch writes this file; write to another one";
            return Err(failed(io::Error::other(why)));
        }
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        read.insert(identity(&found));
    }
    Ok(file)
}

/// A file: its device, inode and birth, as a file that is made later may have the inode of one that is gone.
type Identity = (u64, u64, Option<SystemTime>);

/// The files that perch has opened to read.
static READ: Mutex<BTreeSet<Identity>> = Mutex::new(BTreeSet::new());

fn identity(file: &Metadata) -> Identity {
    (file.dev(), file.ino(), file.created().ok())
}

/// Returns whether perch has opened this file to read it.
fn was_read(file: &Metadata) -> bool {
    let read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    read.contains(&identity(file))
}

/// Refuses what is no file and, unless it is `piped`, no pipe.
fn check(path: &Path, piped: bool, found: &Metadata) -> Result<(), FileError> {
    let kind = found.file_type();
    let found = match () {
        () if kind.is_file() || piped && kind.is_fifo() => return Ok(()),
        () if kind.is_fifo() => "a pipe",
        () if kind.is_dir() => "a directory",
        () if kind.is_char_device() || kind.is_block_device() => "a device",
        () => "neither",
    };
    let path = path.display().to_string();
    let expected = if piped { "a regular file or a pipe" } else { "a regular file" };
    Err(FileError::NoFile { path, found, expected })
}

/// Reads a whole file.
///
/// # Errors
/// Those of [`open`], and when the file is too large for its kind.
pub fn bytes(path: &Path, kind: Kind) -> Result<Vec<u8>, FileError> {
    bytes_of(open_as(path, kind.piped)?, &path.display().to_string(), kind)
}

/// Reads a whole file of text.
///
/// # Errors
/// Those of [`bytes`], and when the file is not UTF-8.
pub fn text(path: &Path, kind: Kind) -> Result<String, FileError> {
    text_of(open_as(path, kind.piped)?, &path.display().to_string(), kind)
}

/// Reads everything that `from` has, like [`bytes`]; errors call it `name`.
///
/// # Errors
/// When there is too much for the kind, or the system refuses.
pub fn bytes_of(from: impl Read, name: &str, kind: Kind) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    let read = from.take(kind.most_bytes + 1).read_to_end(&mut bytes);
    read.map_err(|source| FileError::Io { path: name.to_string(), source })?;
    if bytes.len() as u64 > kind.most_bytes {
        Err(FileError::TooLarge { path: name.to_string(), kind })
    } else {
        Ok(bytes)
    }
}

/// Reads everything that `from` has as text, like [`text`]; errors call it `name`.
///
/// # Errors
/// Those of [`bytes_of`], and when the bytes are not UTF-8.
pub fn text_of(from: impl Read, name: &str, kind: Kind) -> Result<String, FileError> {
    String::from_utf8(bytes_of(from, name, kind)?).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let begins = good.iter().rposition(|byte| *byte == b'\n');
        FileError::NoText {
            path: name.to_string(),
            line: 1 + good.iter().filter(|byte| **byte == b'\n').count(),
            byte: good.len() - begins.map_or(0, |at| at + 1) + 1,
            kind,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::process::{Command, Stdio};

    #[test]
    fn a_device_and_a_directory_are_no_files() {
        for (path, found) in [("/dev/zero", "a device"), ("/", "a directory")] {
            let why = text(Path::new(path), Kind::RESULTS).unwrap_err().to_string();
            assert!(why.contains(path) && why.contains(found), "{why}");
        }
        let why = text(Path::new("/no/such"), Kind::MACHINE).unwrap_err();
        assert!(matches!(why, FileError::Io { .. }), "{why}");
    }

    #[test]
    fn a_pipe_is_none_of_what_lies_in_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR;
        let made = rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0);
        made.unwrap();
        for kind in [Kind::STORED, Kind::FIGURES, Kind::SCHEDULER, Kind::KERNEL] {
            let why = text(&path, kind).unwrap_err().to_string();
            assert!(why.ends_with("it is a pipe; expected a regular file"), "{why}");
        }
    }

    #[test]
    fn what_has_no_end_is_read_up_to_the_limit() {
        let why = text_of(io::repeat(b' '), "endless", Kind::CONFIGURATION).unwrap_err();
        assert_eq!(
            why.to_string(),
            "cannot read endless: it has more than 1 MiB, the most that perch reads of a \
             configuration; check that it is the file that you mean"
        );
        let full = io::repeat(b' ').take(Kind::CONFIGURATION.most_bytes());
        assert!(text_of(full, "full", Kind::CONFIGURATION).is_ok());
    }

    #[test]
    fn a_byte_that_is_no_text_is_named_with_its_line() {
        let place = |bytes: &[u8]| {
            let why = text_of(bytes, "m.toml", Kind::MACHINE).unwrap_err();
            why.to_string().split(" of the line").next().map(str::to_string)
        };
        assert_eq!(place(b"\xff"), Some("m.toml:1: byte 1".to_string()));
        assert_eq!(place(b"a\nb = \xe2\x82"), Some("m.toml:2: byte 5".to_string()));
    }

    #[test]
    fn files_and_pipes_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "text").unwrap();
        assert_eq!(text(&path, Kind::MACHINE).unwrap(), "text");
        let mut echo = Command::new("echo");
        let mut echo = echo.arg("piped").stdout(Stdio::piped()).spawn().unwrap();
        let pipe = echo.stdout.take().unwrap();
        let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
        assert_eq!(text(Path::new(&path), Kind::MACHINE).unwrap(), "piped\n");
        echo.wait().unwrap();
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads /proc and /sys, the running kernel's or those that a test laid out.

use std::io;
use std::path::{Path, PathBuf};

use perch_file::{FileError, Kind};
use perch_machine::cpulist;

/// A tree that holds `proc` and `sys`.
pub(crate) struct Tree {
    root: PathBuf,
}

/// A thing that perch could not look at, and why.
#[derive(Debug, thiserror::Error)]
pub enum UnseenError {
    /// A file could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A directory could not be listed.
    #[error("cannot list {}: {source}", path.display())]
    Folder {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file holds something else than a list of CPUs.
    #[error("{}: {source}; expected a list of CPUs such as 0,3-5", path.display())]
    Cpus {
        /// The file.
        path: PathBuf,
        /// The defect of the list.
        source: cpulist::ListError,
    },
    /// The kernel's type information is not in the format.
    #[error("{}: {why}", path.display())]
    Types {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

impl Tree {
    pub fn new(root: &Path) -> Tree {
        Tree { root: root.to_path_buf() }
    }

    /// The whole name of a file below the root.
    pub fn path(&self, file: &str) -> PathBuf {
        self.root.join(file)
    }

    /// Returns the trimmed text of a file below the root; none where there is no such file, or where it
    /// went away meanwhile.
    ///
    /// # Errors
    /// When the file cannot be read, or is longer than files of the kernel are.
    pub fn text(&self, file: &str) -> Result<Option<String>, FileError> {
        match perch_file::bytes(&self.path(file), Kind::SYSFS) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).trim().to_string())),
            Err(FileError::Io { source, .. }) if is_absent(&source) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the CPUs in a file, none where there is no such file. The kernel's `(null)`, for a mask
    /// that was never made, is an empty list.
    ///
    /// # Errors
    /// When the file cannot be read or holds something else.
    pub fn cpus(&self, file: &str) -> Result<Vec<u32>, UnseenError> {
        match self.text(file)?.as_deref() {
            None | Some("(null)") => Ok(Vec::new()),
            Some(text) => cpulist::parse(text)
                .map_err(|source| UnseenError::Cpus { path: self.path(file), source }),
        }
    }

    /// Returns the names in a directory, sorted; none where there is no such directory.
    ///
    /// # Errors
    /// When the directory cannot be listed.
    pub fn names(&self, folder: &str) -> Result<Vec<String>, UnseenError> {
        self.list(folder, |_| true)
    }

    /// Returns the names of the directories in a directory, links left out; none where there is no such
    /// directory. Unlike a look at each name, this asks the kernel once for many of them.
    ///
    /// # Errors
    /// When the directory cannot be listed.
    pub fn folders(&self, folder: &str) -> Result<Vec<String>, UnseenError> {
        self.list(folder, |entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
    }

    /// Returns the names in a directory that are numbers, ascending, as /proc has processes and their
    /// threads; none where it cannot be listed.
    pub fn numbers(&self, folder: &str) -> Vec<u32> {
        let names = self.names(folder).unwrap_or_default();
        let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Returns the names of those entries of a directory that are wanted, sorted.
    fn list(
        &self,
        folder: &str,
        wanted: impl Fn(&std::fs::DirEntry) -> bool,
    ) -> Result<Vec<String>, UnseenError> {
        let failed = |source| UnseenError::Folder { path: self.path(folder), source };
        let entries = match std::fs::read_dir(self.path(folder)) {
            Ok(entries) => entries,
            Err(error) if is_absent(&error) => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            match entry {
                Ok(entry) if wanted(&entry) => names.extend(entry.file_name().into_string()),
                Ok(_) => {}
                // A process or a cgroup that ends while its directory is read.
                Err(error) if is_absent(&error) => break,
                Err(error) => return Err(failed(error)),
            }
        }
        names.sort();
        Ok(names)
    }
}

/// True if the error says that there is no such thing: the kernel answers ESRCH for a process that has
/// ended, and ENODEV for a cgroup that was removed.
fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENODEV))
}

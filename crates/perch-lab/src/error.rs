// SPDX-License-Identifier: GPL-2.0-or-later
//! The errors of this crate, in words for the person who wanted a guest.

use std::path::{Path, PathBuf};

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why something that a guest needs is missing, or why the guest did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or a folder could not be read, written or made.
    #[error("cannot {doing} {}: {source}", path.display())]
    File {
        /// "read", "write", "make"…
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error that the system returned.
        source: std::io::Error,
    },
    /// A program of the host could not be started at all.
    #[error("cannot run {program}: {source}; {remedy}")]
    Spawn {
        /// Its name.
        program: String,
        /// Advice on how to get the program.
        remedy: String,
        /// The error that the system returned.
        source: std::io::Error,
    },
    /// A program of the host ran and failed.
    #[error("{program} failed while {doing}: {said}")]
    Program {
        /// Its name.
        program: String,
        /// The work that it failed at, for "failed while".
        doing: String,
        /// The last lines of what it wrote, or its exit status when it wrote nothing.
        said: String,
    },
    /// The cache cannot hold what is to be fetched.
    #[error(
        "{what} needs {} MB below {} and {} MB are free; make room, or set PERCH_CACHE to a folder \
         with more", mb(*.needed), folder.display(), mb(*.free)
    )]
    Space {
        /// The thing that was to be kept.
        what: String,
        /// The folder of the cache.
        folder: PathBuf,
        /// The bytes that the thing takes.
        needed: u64,
        /// The bytes that are free below the folder.
        free: u64,
    },
    /// The request makes no sense, or a file that the user gave is of the wrong kind.
    #[error("{0}")]
    Input(String),
    /// Something that a guest needs can neither be found nor fetched.
    #[error("{0}")]
    Missing(String),
    /// A guest did not come up, or is gone.
    #[error("{what}; {}", shown(console))]
    Guest {
        /// The event, in words.
        what: String,
        /// The last lines of its console.
        console: String,
    },
    /// A running guest could not carry out a request.
    #[error("{0}")]
    Command(String),
}

/// The console's last lines for a message.
fn shown(console: &str) -> String {
    match console {
        "" => "its console stayed empty".to_string(),
        lines => format!("the last lines of its console:\n{lines}"),
    }
}

/// Megabytes, rounded up, for people.
fn mb(bytes: u64) -> u64 {
    bytes.div_ceil(1_000_000)
}

impl Error {
    /// Wraps the system's error about `path`, for `map_err`.
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_path_buf();
        move |source| Error::File { doing, path, source }
    }

    /// Returns whether the request itself is at fault, and not its execution: exit code 2 instead
    /// of 1.
    pub fn is_input(&self) -> bool {
        matches!(self, Error::Input(_))
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Why there is no guest, in words for the person who wanted one.

use std::path::{Path, PathBuf};

/// Shorthand for what this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something that a guest needs is missing, or why the guest did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or a folder could not be read, written or made.
    #[error("cannot {doing} {}: {source}", path.display())]
    File {
        /// "read", "write", "make"…
        doing: &'static str,
        /// What it was done to.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A program of the host could not be started at all.
    #[error("cannot run {program}: {source}; {remedy}")]
    Spawn {
        /// Its name.
        program: String,
        /// What to do about it.
        remedy: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A program of the host ran and failed.
    #[error("{program} failed while {doing}: {said}")]
    Program {
        /// Its name.
        program: String,
        /// What it was to do.
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
        /// What was to be kept.
        what: String,
        /// Where.
        folder: PathBuf,
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that there are.
        free: u64,
    },
    /// What was asked for makes no sense, or a file that was given is not what it should be.
    #[error("{0}")]
    Input(String),
    /// Something that a guest needs can neither be found nor fetched.
    #[error("{0}")]
    Missing(String),
    /// A guest did not come up, or went away.
    #[error("{what}; {}", shown(console))]
    Guest {
        /// What happened.
        what: String,
        /// The last lines of its console.
        console: String,
    },
    /// What was asked of a running guest could not be done.
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
    /// Wraps what the system said about `path`, for `map_err`.
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_path_buf();
        move |source| Error::File {
            doing,
            path,
            source,
        }
    }

    /// Whether what was asked for is to blame, and not how it went: exit code 2 and not 1.
    pub fn is_input(&self) -> bool {
        matches!(self, Error::Input(_))
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The errors of an import.

use crate::perf::RecordError;

/// The reason why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file could not be opened; the sentence names it.
    #[error(transparent)]
    File(#[from] perch_file::FileError),
    /// The operating system could not read the file.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file's contents make no sense, or cannot be imported; the sentence says where, and what
    /// to do.
    #[error("{0}")]
    Input(String),
    /// A record makes no sense.
    #[error("at byte {at}: {source}: the file is damaged or was cut off")]
    Record {
        /// The place in the file where the record begins.
        at: u64,
        /// The fault of the record.
        source: RecordError,
    },
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The errors of an import.

use crate::perf::RecordError;

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// What is in it makes no sense, or cannot be imported: where, and what to do.
    #[error("{0}")]
    Input(String),
    /// A record makes no sense.
    #[error("at byte {at}: {source}: the file is damaged or was cut off")]
    Record {
        /// Where in the file the record begins.
        at: u64,
        /// What is wrong with it.
        source: RecordError,
    },
    /// A program that is needed is missing or failed: which, and what to do.
    #[error("{0}")]
    Reader(String),
}

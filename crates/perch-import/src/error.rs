// SPDX-License-Identifier: GPL-2.0-or-later
//! The errors of an import.

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// What is in it makes no sense, or cannot be imported: where, and what to do.
    #[error("{0}")]
    Input(String),
    /// A program that is needed is missing or failed: which, and what to do.
    #[error("{0}")]
    Reader(String),
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! What can be wrong with a file.

/// Why a recording cannot be read, or no further.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The operating system says so.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// It begins otherwise.
    #[error(
        "not a recording of perch: it begins with {found:02x?}, expected \"PERCHREC\"; recordings \
         are written by perch record"
    )]
    Foreign {
        /// Its first bytes.
        found: Vec<u8>,
    },
    /// Another version.
    #[error(
        "version {found} of the format; this perch reads version {known}: use the perch that wrote it, or a newer one"
    )]
    Version {
        /// The file's.
        found: u32,
        /// What is read here.
        known: u32,
    },
    /// It ends within the signature, or before the header ends.
    #[error("cut off after {bytes} bytes, before its header ends: nothing in it can be read")]
    NoHeader {
        /// How long it is.
        bytes: u64,
    },
    /// A block is not what was written.
    #[error("byte {at}: {what}; what comes before it is good")]
    Damaged {
        /// Where the block begins.
        at: u64,
        /// What is wrong with it.
        what: String,
    },
    /// The header says something impossible.
    #[error("header: {0}")]
    Header(String),
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! What can be wrong with a file.

use super::MOST;

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
    #[error("byte {at}: {source}; what comes before it is good")]
    Damaged {
        /// Where the block begins.
        at: u64,
        /// What is wrong with it.
        source: Damage,
    },
    /// The header is not what it should be.
    #[error("header: {0}")]
    Header(#[source] serde_json::Error),
    /// The header names more columns of a table than there may be.
    #[error("header: {0} columns, expected at most 64")]
    Columns(usize),
}

/// How a block differs from what was written.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// Every recording begins with a header.
    #[error("the first block is no header")]
    NoHeader,
    /// No such blocks are written, or not there.
    #[error("a block of kind {0:#04x} here")]
    Kind(u8),
    /// Larger than any that is written.
    #[error("a block of {stored} bytes, {raw} unpacked: expected at most {MOST}")]
    Size {
        /// Its bytes in the file.
        stored: usize,
        /// Its bytes unpacked.
        raw: usize,
    },
    /// Its bytes are others than those that were written.
    #[error("the checksum of this block is wrong")]
    Checksum,
    /// It cannot be unpacked.
    #[error("{0}")]
    Packed(#[from] lz4_flex::block::DecompressError),
    /// The footer is not what it should be.
    #[error("the footer: {0}")]
    Footer(#[from] serde_json::Error),
    /// Its wake-ups make no sense.
    #[error("{0}")]
    WakeUps(#[from] BlockError),
}

/// Why a block of wake-ups, whose checksum is right, makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// Its last byte is not the end of a number.
    #[error("it ends within a number")]
    NumberEnds,
    /// An affinity is cut off, or has a CPU that the machine does not have.
    #[error("no such affinity")]
    Affinity,
    /// A wake-up has an affinity that does not stand before it.
    #[error("an affinity that was not written")]
    NoAffinity,
    /// Neither an affinity nor a wake-up.
    #[error("something that this version does not know")]
    Unknown,
    /// A wake-up is cut off, or a number in it is too large.
    #[error("it ends within a wake-up, or says something impossible")]
    WakeUpEnds,
    /// A wake-up is of a scheduling class that there is not.
    #[error("a class that this version does not know")]
    Class,
    /// A wake-up names a CPU that there is not.
    #[error("a CPU that the machine does not have")]
    Cpu,
}

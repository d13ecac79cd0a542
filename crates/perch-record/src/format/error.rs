// SPDX-License-Identifier: GPL-2.0-or-later
//! The errors of a file.

use super::MOST;

/// The reason why a recording cannot be read, or not any further.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The operating system returned an error.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file begins with another signature.
    #[error(
        "not a recording of perch: it begins with {found:02x?}, expected \"PERCHREC\"; recordings \
         are written by perch record"
    )]
    Foreign {
        /// The file's first bytes.
        found: Vec<u8>,
    },
    /// The file has another version.
    #[error(
        "version {found} of the format; this perch reads version {known}: use the perch that wrote it, or a newer one"
    )]
    Version {
        /// The version of the file.
        found: u32,
        /// The version that this reader knows.
        known: u32,
    },
    /// The file ends within the signature, or before the header ends.
    #[error("cut off after {bytes} bytes, before its header ends: nothing in it can be read")]
    NoHeader {
        /// The length of the file.
        bytes: u64,
    },
    /// A block differs from the one that was written.
    #[error("byte {at}: {source}; what comes before it is good")]
    Damaged {
        /// The offset at which the block begins.
        at: u64,
        /// The damage of the block.
        source: Damage,
    },
    /// The header makes no sense.
    #[error("header: {0}")]
    Header(#[source] serde_json::Error),
    /// The header names more columns of a table than there may be.
    #[error("header: {0} columns, expected at most 64")]
    Columns(usize),
}

/// The difference between a block and the one that was written.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// The first block is not a header, but every recording begins with one.
    #[error("the first block is not a header")]
    NoHeader,
    /// No writer writes a block of this kind, or not at this place.
    #[error("a block of kind {0:#04x} here")]
    Kind(u8),
    /// The block is larger than any that is written.
    #[error("a block of {stored} bytes, {raw} unpacked: expected at most {MOST}")]
    Size {
        /// The number of the block's bytes in the file.
        stored: usize,
        /// The number of its bytes when unpacked.
        raw: usize,
    },
    /// The bytes of the block differ from those that were written.
    #[error("the checksum of this block is wrong")]
    Checksum,
    /// The block cannot be unpacked.
    #[error("{0}")]
    Packed(#[from] lz4_flex::block::DecompressError),
    /// The footer makes no sense.
    #[error("the footer: {0}")]
    Footer(#[from] serde_json::Error),
    /// The block's decisions about queues make no sense.
    #[error("a decision: {0}")]
    Decision(#[from] postcard::Error),
    /// The block's wake-ups make no sense.
    #[error("{0}")]
    WakeUps(#[from] BlockError),
}

/// The reason why a block of wake-ups, whose checksum is right, makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// The block ends within a number.
    #[error("it ends within a number")]
    NumberEnds,
    /// An affinity is cut off, or names a CPU that the machine does not have.
    #[error("no such affinity")]
    Affinity,
    /// A wake-up refers to an affinity that the block does not hold before it.
    #[error("an affinity that was not written")]
    NoAffinity,
    /// An entry is neither an affinity nor a wake-up.
    #[error("something that this version does not know")]
    Unknown,
    /// A wake-up is cut off, or a number in it is too large.
    #[error("it ends within a wake-up, or says something impossible")]
    WakeUpEnds,
    /// A wake-up has a scheduling class that does not exist.
    #[error("a class that this version does not know")]
    Class,
    /// A wake-up names a CPU that the machine does not have.
    #[error("a CPU that the machine does not have")]
    Cpu,
}

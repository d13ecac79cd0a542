// SPDX-License-Identifier: GPL-2.0-or-later
//! The file: a signature, then blocks that each stand for themselves.
//!
//! ```text
//! "PERCHREC" version:u32
//! block…    kind:u8 stored:u32 raw:u32 crc32:u32 bytes[stored]     little-endian
//! ```
//! The checksum covers kind, both lengths and the bytes; the bytes are an LZ4 block when `stored`
//! is less than `raw`. The first block is the header (`H`, JSON), then come wake-ups (`W`), and the
//! last is the footer (`F`, JSON), which a recording that was cut off does not have. Inside a block
//! of wake-ups every row is written as what changed since the same row was written last in that
//! block, so blocks can be read in any order and by several threads.

mod bytes;
mod error;
mod read;
mod tasks;
mod wakeups;
mod write;

pub use error::{BlockError, Damage, FormatError};
pub use read::{Block, Reader};
pub use wakeups::{Cursor, Moment};
pub use write::Writer;

use serde::{Deserialize, Serialize};

/// What a file begins with.
const SIGNATURE: &[u8; 8] = b"PERCHREC";
/// The version that is written, and the only one that is read.
const VERSION: u32 = 1;
/// Bytes before a block's own.
const PREFIX: usize = 13;
/// A block of wake-ups is closed when it has so many bytes, about 3,000 wake-ups.
const BLOCK: usize = 256 << 10;
/// What no block exceeds: a machine of 8192 CPUs fits several times over.
const MOST: usize = 16 << 20;

/// Kinds of blocks.
mod kind {
    pub const HEADER: u8 = b'H';
    pub const WAKE_UPS: u8 = b'W';
    pub const FOOTER: u8 = b'F';
}

/// What a recording is of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The perch that wrote it.
    pub perch: String,
    /// The machine, as TOML (see docs/machines.md).
    pub machine: String,
    /// The kernel's release.
    pub kernel: String,
    /// The era whose rules it follows.
    pub era: String,
    /// What it has of the mechanisms, as `--set` takes it; empty where the release says it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub modes: String,
    /// Ticks a second.
    pub hz: u32,
    /// What was run while it was recorded; empty when nothing was started for it.
    pub command: Vec<String>,
    /// Columns of a CPU's row.
    pub cpu: Vec<String>,
    /// Columns of a shared cache's row.
    pub group: Vec<String>,
    /// Columns of a task's row.
    pub task: Vec<String>,
    /// How many rows there are of CPUs, and of what they share; not in the first recordings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<[usize; 2]>,
}

/// What was known at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footer {
    /// Wake-ups in the file.
    pub wake_ups: u64,
    /// Wake-ups that were lost because the ring buffer was full.
    pub dropped: u64,
    /// Nanoseconds that recording took, all CPUs together.
    pub cost_ns: u64,
    /// Wake-ups that nobody had to decide, and that are not in the file.
    #[serde(default)]
    pub undecided: Undecided,
}

/// Wake-ups that no scheduling class is asked about, by why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Undecided {
    /// A task woke itself: it was on its way to sleep.
    pub itself: u64,
    /// The task was still in its queue.
    pub queued: u64,
    /// It may use one CPU only.
    pub pinned: u64,
    /// It must not migrate for the moment.
    pub held: u64,
    /// It was still leaving its CPU, which was left to queue it, or it is of another class.
    pub others: u64,
}

impl Undecided {
    /// How many and why; nothing when there are none.
    pub fn words(&self) -> Option<String> {
        let some = self.by_name().into_iter().filter(|(_, count)| *count > 0);
        let words: Vec<_> = some.map(|(name, n)| format!("{n} {name}")).collect();
        let sum: u64 = self.by_name().iter().map(|(_, count)| count).sum();
        (sum > 0).then(|| {
            let words = words.join(", ");
            format!("{sum} wake-ups more had not to be decided: {words}")
        })
    }

    /// With their names.
    pub fn by_name(&self) -> [(&'static str, u64); 5] {
        [
            ("woke themselves", self.itself),
            ("were still queued", self.queued),
            ("may use one CPU", self.pinned),
            ("must not migrate now", self.held),
            (
                "were on their way out of a CPU or of another class",
                self.others,
            ),
        ]
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The file of a recording: a signature, then blocks that can each be read without the others.
//!
//! ```text
//! "PERCHREC" version:u32
//! block…    kind:u8 stored:u32 raw:u32 crc32:u32 bytes[stored]     little-endian
//! ```
//! The checksum covers kind, both lengths and the bytes; the bytes are an LZ4 block when `stored`
//! is less than `raw`. The first block is the header (`H`, JSON), then come wake-ups (`W`) and
//! decisions about queues (`D`, one after the other in postcard's form), and the last is the footer (`F`, JSON), which a recording that was cut off does not have. Inside a block
//! of wake-ups the writer stores of every row only the changes since it last wrote the same row in
//! that block, so blocks can be read in any order and by several threads.
//!
//! Numbers have seven bits a byte, lowest first; differences are zigzag; a row is the mask of its columns
//! that changed and their differences. `1` begins the words of an affinity, numbered as they come. `2`
//! begins a wake-up: its row (time, class and flags, CPU of the waker, previous CPU, choice, waker), the
//! wakee, the rows of waker and wakee, the words of where the wakee's group has something queued (none so
//! far), the CPUs that changed, each as its distance from the last and its row, and the caches likewise.
//! After it may come `4`: groups whose capacity is not the sum of their CPUs', each as the distance of its
//! set's number from the last, that capacity and the largest of its CPUs'; then `3`: the CPUs that were
//! otherwise when the choice was made, and what differs from their rows. Class and flags have bits above
//! them: 40, that CPUs' rows are known in part; 41, that whether the waker was interrupted is a guess; 42,
//! that the recorder heard what the kernel was told when it asked whether a CPU is idle.

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

/// The signature at the beginning of a file.
const SIGNATURE: &[u8; 8] = b"PERCHREC";
/// The version that perch writes, and the only one that it reads.
const VERSION: u32 = 1;
/// The number of bytes of a block's prefix.
const PREFIX: usize = 13;
/// The writer closes a block of wake-ups when it has so many bytes, about 3,000 wake-ups.
const BLOCK: usize = 256 << 10;
/// No block exceeds this size: the state of a machine of 8192 CPUs fits several times over.
const MOST: usize = 16 << 20;

/// Kinds of blocks.
mod kind {
    pub const HEADER: u8 = b'H';
    pub const WAKE_UPS: u8 = b'W';
    pub const DECISIONS: u8 = b'D';
    pub const FOOTER: u8 = b'F';
}

/// The circumstances of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The version of perch that wrote the file.
    pub perch: String,
    /// The machine, as TOML (see docs/machines.md).
    pub machine: String,
    /// The kernel's release.
    pub kernel: String,
    /// The era whose rules the kernel follows.
    pub era: String,
    /// The kernel's modes of the mechanisms, in the syntax of `--set`; empty where the release
    /// determines them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub modes: String,
    /// Ticks a second.
    pub hz: u32,
    /// The command that was run during the recording; empty when none was started for it.
    pub command: Vec<String>,
    /// Columns of a CPU's row.
    pub cpu: Vec<String>,
    /// Columns of a shared cache's row.
    pub group: Vec<String>,
    /// Columns of a task's row.
    pub task: Vec<String>,
    /// The number of rows of CPUs, and of rows of what CPUs share; the first recordings lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<[usize; 2]>,
}

/// The counts at the end of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footer {
    /// The number of wake-ups in the file.
    pub wake_ups: u64,
    /// Wake-ups that were lost because the ring buffer was full.
    pub dropped: u64,
    /// Nanoseconds that the recorder itself took, all CPUs together.
    pub cost_ns: u64,
    /// Wake-ups that no scheduling class had to decide, and that are not in the file.
    #[serde(default)]
    pub undecided: Undecided,
    /// The decisions about queues; none where they were not to be recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisions: Option<Decisions>,
}

/// The counts of decisions about queues at the end of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decisions {
    /// The number of decisions in the file.
    pub recorded: u64,
    /// Decisions that were lost because the ring buffer was full.
    pub dropped: u64,
    /// Decisions about queues with more entities than a record has room for.
    pub too_long: u64,
    /// Nanoseconds that the recorder took to look at queues, all CPUs together.
    pub cost_ns: u64,
}

/// Wake-ups that no scheduling class is asked about, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Undecided {
    /// A task woke itself, on its way to sleep.
    pub itself: u64,
    /// The task was still in its queue.
    pub queued: u64,
    /// The task may use one CPU only.
    pub pinned: u64,
    /// The task must not migrate for the moment.
    pub held: u64,
    /// The task was still leaving its CPU, and that CPU was left to queue it; or the task is of
    /// another class.
    pub others: u64,
}

impl Undecided {
    /// Returns the counts and their reasons as a text; none when all counts are 0.
    pub fn words(&self) -> Option<String> {
        let some = self.by_name().into_iter().filter(|(_, count)| *count > 0);
        let words: Vec<_> = some.map(|(name, n)| format!("{n} {name}")).collect();
        let sum: u64 = self.by_name().iter().map(|(_, count)| count).sum();
        (sum > 0).then(|| {
            let words = words.join(", ");
            format!("{sum} other wake-ups needed no decision: {words}")
        })
    }

    /// Returns the counts with the names of their reasons.
    pub fn by_name(&self) -> [(&'static str, u64); 5] {
        [
            ("woke themselves", self.itself),
            ("were still queued", self.queued),
            ("may use one CPU", self.pinned),
            ("must not migrate now", self.held),
            ("were on their way out of a CPU or of another class", self.others),
        ]
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Segments: stretches of the running task's work, from one event to the next.

mod rounds;
mod run;
mod streak;

use streak::Streak;
pub use streak::{Ended, Rounds};

/// A CPU's segment.
#[derive(Debug, Default)]
pub(crate) struct Segment {
    /// Overtakes older segment events of this CPU.
    tag: u32,
    /// When it began; in the future while the switch to its task is under way.
    start_ns: u64,
    /// The segment is many rounds at once.
    streak: Option<Streak>,
    /// Where the last streak ended, until the task's program has been told.
    ended: Option<Ended>,
}

impl Segment {
    /// The tag of the event with which the segment ends.
    pub fn tag(&self) -> u32 {
        self.tag
    }
}

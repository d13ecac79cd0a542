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
    /// The number by which the CPU tells its present segment's event from those of older segments.
    tag: u32,
    /// The time at which the segment began, in nanoseconds; in the future while the switch to its
    /// task is under way.
    start_ns: u64,
    /// The streak, if the segment is many rounds at once.
    streak: Option<Streak>,
    /// The place at which the last streak ended, until the task's program has been told.
    ended: Option<Ended>,
}

impl Segment {
    /// Returns the tag of the event with which the segment ends.
    pub fn tag(&self) -> u32 {
        self.tag
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! Segments: stretches of the running task's work, from one event to the next.

mod streak;

use super::{Sched, kind};
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

impl Sched<'_> {
    /// Starts the running task's work, or goes on with it: overheads come first, they are part of
    /// the work.
    pub fn begin_segment(&mut self, cpu: usize) {
        self.settle_lines(cpu);
        let c = &mut self.cpus[cpu];
        let Some(task) = c.current else {
            return;
        };
        let t = &mut self.tasks[task as usize];
        t.left_ns += std::mem::take(&mut t.debt_ns);
        c.segment.start_ns = self.now;
        c.segment.tag = c.segment.tag.wrapping_add(1);
        let (at_ns, tag) = (self.now + c.wall_ns(t.left_ns), c.segment.tag);
        self.at(at_ns, kind::SEGMENT, cpu as u32, tag);
    }

    /// Interrupts the running task's work, remembering what is left of it.
    pub fn stop_segment(&mut self, cpu: usize) {
        self.end_streak(cpu);
        let c = &mut self.cpus[cpu];
        let Some(task) = c.current else {
            return;
        };
        c.segment.tag = c.segment.tag.wrapping_add(1);
        let done = (self.now - c.segment.start_ns) * u64::from(c.speed_1024) / 1024;
        let t = &mut self.tasks[task as usize];
        t.left_ns = t.left_ns.saturating_sub(done);
    }

    /// The event of a segment's end has come: is it that of the segment under way? Then the running
    /// task's work is done, and the task is returned, which has to go on.
    #[inline]
    pub fn segment_end(&mut self, cpu: usize, tag: u32) -> Option<u32> {
        let c = &self.cpus[cpu];
        if c.segment.tag != tag {
            return None;
        }
        let task = c.current?;
        self.finish_streak(cpu);
        self.tasks[task as usize].left_ns = 0;
        Some(task)
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The beginning and the end of the running task's segment.

use crate::core::{Sched, kind};
use crate::id::TaskId;

impl Sched<'_> {
    /// Begins a segment of the running task's work, or goes on with its work. The task's charges
    /// are part of the work and come first.
    pub fn begin_segment(&mut self, cpu: usize) {
        self.settle_lines(cpu);
        let c = &mut self.cpus[cpu];
        let Some(task) = self.rq.current(cpu) else {
            return;
        };
        let now = self.rq.now();
        let t = self.rq.task_mut(task);
        t.left_ns += std::mem::take(&mut t.debt_ns);
        c.segment.start_ns = now;
        c.segment.tag = c.segment.tag.wrapping_add(1);
        let (at_ns, tag) = (now + c.wall_ns(t.left_ns), c.segment.tag);
        self.at(at_ns, kind::SEGMENT, cpu as u32, tag);
    }

    /// Interrupts the running task's work, and keeps what is left of it.
    pub fn stop_segment(&mut self, cpu: usize) {
        self.end_streak(cpu);
        let c = &mut self.cpus[cpu];
        let Some(task) = self.rq.current(cpu) else {
            return;
        };
        c.segment.tag = c.segment.tag.wrapping_add(1);
        let done = (self.rq.now() - c.segment.start_ns) * u64::from(c.speed_1024) / 1024;
        let t = self.rq.task_mut(task);
        t.left_ns = t.left_ns.saturating_sub(done);
    }

    /// Handles the event of a segment's end. If it is the event of the segment under way, the
    /// running task's work is done, and the function returns the task, whose program has to go on.
    #[inline]
    pub fn segment_end(&mut self, cpu: usize, tag: u32) -> Option<TaskId> {
        let c = &self.cpus[cpu];
        if c.segment.tag != tag {
            return None;
        }
        let task = self.rq.current(cpu)?;
        self.finish_streak(cpu);
        self.rq.task_mut(task).left_ns = 0;
        Some(task)
    }
}

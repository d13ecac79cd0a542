// SPDX-License-Identifier: GPL-2.0-or-later
//! The beginning and the end of a CPU's streak.

use super::streak::{Ended, Rounds, Span, Streak};
use crate::core::{Sched, kind};
use crate::id::TaskId;

impl Sched<'_> {
    /// Begins a streak of the rounds `of`, which the running task of `cpu` goes through from now
    /// on. The task's program has asked [`Sched::is_alone`] first.
    pub fn begin_streak(&mut self, cpu: usize, task: TaskId, of: &Rounds) {
        debug_assert!(of.rounds >= 2 && of.held_ns > 0 && self.cpus[cpu].segment.ended.is_none());
        let now = self.rq.now();
        let t = self.rq.task_mut(task);
        let c = &mut self.cpus[cpu];
        let span = |work_ns: u64| Span { work_ns, wall_ns: c.wall_ns(work_ns) };
        let first = span(of.held_ns + std::mem::take(&mut t.debt_ns));
        let streak = Streak {
            rounds: of.rounds,
            start_ns: now,
            first,
            free: span(of.free_ns),
            held: span(of.held_ns),
        };
        t.left_ns = first.work_ns;
        c.segment.streak = Some(streak);
        c.segment.start_ns = self.rq.now();
        c.segment.tag = c.segment.tag.wrapping_add(1);
        let tag = c.segment.tag;
        let end_ns = streak.freed_ns(of.rounds - 1);
        self.at(end_ns, kind::SEGMENT, cpu as u32, tag);
    }

    /// Ends the streak of `cpu`, if it has one, with the first stretch of its last round.
    #[inline]
    pub(super) fn finish_streak(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        if let Some(streak) = c.segment.streak.take() {
            c.segment.ended = Some(Ended { round: streak.rounds - 1, held: true, whole: true });
        }
    }

    /// Ends the streak of `cpu`, if it has one, at this moment: from here on every step is an
    /// event.
    #[inline]
    pub fn end_streak(&mut self, cpu: usize) {
        if self.cpus[cpu].segment.streak.is_some() {
            self.cut_streak(cpu);
        }
    }

    fn cut_streak(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let current = self.rq.current(cpu);
        let (Some(streak), Some(task)) = (c.segment.streak.take(), current) else {
            return;
        };
        let done = (kind::SEGMENT, cpu as u32) < self.handled;
        let stretch = streak.at(self.rq.now(), done);
        self.rq.task_mut(task).left_ns = stretch.span.work_ns;
        c.segment.ended = Some(Ended { round: stretch.round, held: stretch.held, whole: false });
        c.segment.start_ns = stretch.from_ns;
        c.segment.tag = c.segment.tag.wrapping_add(1);
        let tag = c.segment.tag;
        let end_ns = stretch.from_ns + stretch.span.wall_ns;
        self.at(end_ns, kind::SEGMENT, cpu as u32, tag);
    }

    /// Returns the place at which the last streak of `cpu` ended, if this was not called for it
    /// yet.
    pub fn take_ended(&mut self, cpu: usize) -> Option<Ended> {
        self.cpus[cpu].segment.ended.take()
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! What changes with time alone, without an event of its own: which CPUs count as idle.

use std::collections::VecDeque;

use super::Sched;

/// The reason why a CPU will count as idle or as taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Due {
    /// This CPU has switched to its idle task.
    Left(usize),
    /// This CPU takes its wakees off the list.
    Unlisted(usize),
    /// The waker on this CPU is done, and others see which CPU it has chosen.
    Woken(usize),
}

/// What is due, with its time in nanoseconds, in the order of time.
#[derive(Debug, Default)]
pub(super) struct Later(VecDeque<(u64, Due)>);

impl Later {
    /// Adds what is due at `at_ns`, behind what is due no later. Most things take as long as one
    /// another, so that it is the last.
    pub fn add(&mut self, at_ns: u64, due: Due) {
        let later = self.0.iter().rev().take_while(|&&(at, _)| at > at_ns);
        let place = self.0.len() - later.count();
        self.0.insert(place, (at_ns, due));
    }

    /// Takes the first that is due at `now_ns`.
    #[inline]
    fn take(&mut self, now_ns: u64) -> Option<(u64, Due)> {
        match self.0.front() {
            Some(&(at, _)) if at <= now_ns => self.0.pop_front(),
            _ => None,
        }
    }
}

impl Sched<'_> {
    /// Does what is due by now.
    #[inline]
    pub(super) fn catch_up(&mut self) {
        let now = self.rq.now();
        while let Some((at_ns, due)) = self.later.take(now) {
            match due {
                Due::Left(cpu) => self.end_leaving(cpu, at_ns),
                Due::Unlisted(cpu) => self.take_off_list(cpu),
                Due::Woken(by) => self.end_claim_of(by, at_ns),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_comes_in_the_order_of_time() {
        let mut later = Later::default();
        for (at, cpu) in [(700, 0), (9000, 1), (800, 2), (700, 3), (9000, 4), (10_000, 5)] {
            later.add(at, Due::Left(cpu));
        }
        let due: Vec<_> = std::iter::from_fn(|| later.take(9000)).collect();
        let order: Vec<Due> = due.iter().map(|&(_, due)| due).collect();
        assert_eq!(order, [0, 3, 2, 1, 4].map(Due::Left));
        assert_eq!(later.take(10_000), Some((10_000, Due::Left(5))));
    }
}

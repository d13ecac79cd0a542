// SPDX-License-Identifier: GPL-2.0-or-later
//! Dispatch queues.

use std::cmp::Ordering;
use std::collections::VecDeque;

use perch_engine::TaskId;

/// A task in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub task: TaskId,
    /// The virtual time by which the queue is ordered, if it is.
    pub vtime: u64,
    /// The number of the insertion; it grows.
    pub seq: u64,
}

/// A dispatch queue: first in, first out, or by virtual time; whichever its first task came for.
#[derive(Debug, Default)]
pub(super) struct Dsq {
    list: VecDeque<Entry>,
    by_vtime: bool,
    seq: u64,
}

/// Compares virtual times, which may wrap around (`time_before64()`).
fn order(a: u64, b: u64) -> Ordering {
    (a.wrapping_sub(b) as i64).cmp(&0)
}

impl Dsq {
    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn get(&self, at: usize) -> Option<Entry> {
        self.list.get(at).copied()
    }

    pub fn first(&self) -> Option<TaskId> {
        self.list.front().map(|entry| entry.task)
    }

    pub fn tasks(&self) -> impl Iterator<Item = TaskId> {
        self.list.iter().map(|entry| entry.task)
    }

    /// Returns the number of the newest insertion.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns whether a task may be queued in this way: a queue does not mix the two.
    pub fn takes(&self, by_vtime: bool) -> bool {
        self.list.is_empty() || self.by_vtime == by_vtime
    }

    /// Queues the task behind all others, or before them.
    pub fn push(&mut self, task: TaskId, at_head: bool) {
        self.by_vtime = false;
        self.seq += 1;
        let (vtime, seq) = (0, self.seq);
        let entry = Entry { task, vtime, seq };
        if at_head {
            self.list.push_front(entry);
        } else {
            self.list.push_back(entry);
        }
    }

    /// Queues the task behind those whose virtual time is not later.
    pub fn push_by_vtime(&mut self, task: TaskId, vtime: u64) {
        self.by_vtime = true;
        self.seq += 1;
        let seq = self.seq;
        let at = (self.list).partition_point(|e| order(e.vtime, vtime) != Ordering::Greater);
        self.list.insert(at, Entry { task, vtime, seq });
    }

    /// Takes the task out, if it is here.
    pub fn remove(&mut self, task: TaskId) -> bool {
        let at = self.list.iter().position(|entry| entry.task == task);
        at.is_some_and(|at| self.list.remove(at).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(dsq: &Dsq) -> Vec<u32> {
        dsq.tasks().map(|task| task.0).collect()
    }

    #[test]
    fn tasks_come_in_the_order_of_arrival_or_of_virtual_time() {
        let mut dsq = Dsq::default();
        for task in 1..4 {
            dsq.push(TaskId(task), false);
        }
        dsq.push(TaskId(9), true);
        assert_eq!(tasks(&dsq), [9, 1, 2, 3]);
        assert!(!dsq.takes(true));
        assert!(dsq.remove(TaskId(2)) && !dsq.remove(TaskId(2)));
        assert_eq!(tasks(&dsq), [9, 1, 3]);

        let mut dsq = Dsq::default();
        // The clock wraps around between the second and the third.
        for (task, vtime) in [(1, 5), (2, u64::MAX), (3, 1), (4, 5), (5, u64::MAX - 3)] {
            dsq.push_by_vtime(TaskId(task), vtime);
        }
        assert_eq!(tasks(&dsq), [5, 2, 3, 1, 4]);
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! A CPU's real-time queue.
//!
//! The kernel keeps a list for each of 100 priorities and a bitmap of those that are not empty. One
//! sorted vector, highest priority first and equals in the order of their list, is the same order,
//! and shorter to walk: queues hold a handful of tasks.

use crate::id::TaskId;

/// Tasks by priority, the highest first; those of equal priority in the order of their list.
#[derive(Debug, Default)]
pub struct Ranks {
    tasks: Vec<(u8, TaskId)>,
}

impl Ranks {
    /// Returns the task of the highest priority, and that priority.
    pub fn first(&self) -> Option<(u8, TaskId)> {
        self.tasks.first().copied()
    }

    /// Returns the highest priority; 0 if there is no task.
    pub fn highest(&self) -> u8 {
        self.first().map_or(0, |(priority, _)| priority)
    }

    /// Returns whether there is no task.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Returns the number of tasks.
    pub fn len(&self) -> u32 {
        self.tasks.len() as u32
    }

    /// Returns all tasks with their priorities, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u8, TaskId)> + '_ {
        self.tasks.iter().copied()
    }

    /// Returns the number of tasks with this priority.
    pub fn equals(&self, priority: u8) -> usize {
        self.tasks.iter().filter(|(p, _)| *p == priority).count()
    }

    /// Inserts a task behind those of equal priority.
    pub fn push_back(&mut self, priority: u8, task: TaskId) {
        let at = self.tasks.partition_point(|(p, _)| *p >= priority);
        self.tasks.insert(at, (priority, task));
    }

    /// Inserts a task before those of equal priority.
    pub fn push_front(&mut self, priority: u8, task: TaskId) {
        let at = self.tasks.partition_point(|(p, _)| *p > priority);
        self.tasks.insert(at, (priority, task));
    }

    /// Takes a task out. Returns whether it was there.
    pub fn remove(&mut self, task: TaskId) -> bool {
        let at = self.tasks.iter().position(|(_, t)| *t == task);
        if let Some(at) = at {
            self.tasks.remove(at);
        }
        at.is_some()
    }
}

/// The real-time class's part of a run queue.
#[derive(Debug, Default)]
pub struct RtQueue {
    /// The runnable tasks, the running one included. That one keeps its place, so that it goes on
    /// first when it is preempted.
    pub(super) runnable: Ranks,
    /// The pushable tasks: those runnable tasks that wait and may run on another CPU.
    pub(super) pushable: Ranks,
    /// True if the CPU runs a real-time task.
    pub(super) running: bool,
    /// The number of tasks that count as runnable, see `nr`.
    counted: u32,
    /// The limit on the share of real-time tasks, see `limit.rs`.
    pub(super) limit: super::limit::Limit,
    /// The averages of the CPU's real-time tasks: the time that other classes do not get.
    pub(super) average: crate::class::pelt::Average,
    /// The CPU on which this CPU's last rotating choice fell (`distribute_cpu_mask_prev`).
    pub(super) rotor: usize,
}

impl RtQueue {
    /// Returns the number of tasks that count as runnable: none while the class is throttled here.
    #[inline]
    pub fn nr(&self) -> u32 {
        self.counted
    }

    /// Returns whether the CPU runs a real-time task.
    #[inline]
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// Counts the runnable tasks again. The caller does so after the class was throttled or
    /// released.
    pub fn count(&mut self) {
        self.counted = if self.limit.is_throttled() { 0 } else { self.runnable.len() };
    }

    /// Enqueues a task behind those of equal priority.
    pub fn enqueue(&mut self, priority: u8, task: TaskId) {
        self.runnable.push_back(priority, task);
        self.count();
    }

    /// Dequeues a task. Returns whether it was there.
    pub fn dequeue(&mut self, task: TaskId) -> bool {
        let was = self.runnable.remove(task);
        self.count();
        was
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn higher_priorities_come_first_and_equals_as_they_were_put() {
        let mut ranks = Ranks::default();
        assert_eq!((ranks.highest(), ranks.len()), (0, 0));
        for (priority, task) in [(10, 1), (50, 2), (10, 3), (99, 4), (50, 5)] {
            ranks.push_back(priority, TaskId(task));
        }
        ranks.push_front(50, TaskId(6));
        ranks.push_front(1, TaskId(7));
        let order: Vec<_> = ranks.iter().map(|(_, task)| task.0).collect();
        assert_eq!(order, [4, 6, 2, 5, 1, 3, 7]);
        assert_eq!((ranks.highest(), ranks.equals(50)), (99, 3));
        assert!(ranks.remove(TaskId(4)) && !ranks.remove(TaskId(4)));
        assert_eq!(ranks.first(), Some((50, TaskId(6))));
    }
}

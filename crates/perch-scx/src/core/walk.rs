// SPDX-License-Identifier: GPL-2.0-or-later
//! Walks over a queue of the program's.

use perch_engine::TaskId;

use super::queues::{Place, Queues};
use crate::abi::flag;

const SETS_SLICE: u32 = 1;
const SETS_VTIME: u32 = 2;

/// An iterator: six words of the program's memory.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Walk {
    queue: u64,
    /// The place of the next task.
    at: u64,
    /// One more than the task that was returned last; 0: none was.
    last: u32,
    flags: u32,
    /// The newest insertion that it shows.
    newest: u64,
    /// What the next task to move gets, if its flag is set.
    slice: u64,
    vtime: u64,
}

impl Walk {
    /// Begins. Returns 0, or ENOENT.
    pub fn begin(&mut self, queues: &Queues, dsq: u64, flags: u64) -> i32 {
        *self = Walk { queue: u64::MAX, ..Walk::default() };
        let Some(place @ Place::User(number)) = queues.find(dsq, 0) else {
            return -2;
        };
        self.queue = number as u64;
        self.flags = (flags & flag::ITER_REV) as u32;
        self.newest = queues.dsq(place).seq();
        0
    }

    pub fn next(&mut self, queues: &Queues) -> Option<TaskId> {
        let queue = queues.user(self.queue as usize)?;
        let len = queue.len() as u64;
        let reverse = u64::from(self.flags) & flag::ITER_REV != 0;
        let entry = |at: u64| queue.get(if reverse { len - 1 - at } else { at } as usize);
        // The task that was returned last may have left the queue since.
        if let Some(last) = self.last.checked_sub(1) {
            let (at, last) = (self.at, TaskId(last));
            let still = at > 0 && at <= len && entry(at - 1).is_some_and(|e| e.task == last);
            if !still {
                self.at -= at.min(1);
            }
        }
        self.last = 0;
        while self.at < len {
            let entry = entry(self.at)?;
            self.at += 1;
            // Tasks that came after the walk began are passed over.
            if entry.seq <= self.newest {
                self.last = entry.task.0 + 1;
                return Some(entry.task);
            }
        }
        None
    }

    pub fn set_slice(&mut self, slice: u64) {
        self.flags |= SETS_SLICE;
        self.slice = slice;
    }

    pub fn set_vtime(&mut self, vtime: u64) {
        self.flags |= SETS_VTIME;
        self.vtime = vtime;
    }

    /// The slice and the virtual time that the next task to move gets. The one behind it gets none.
    pub(super) fn take_sets(&mut self) -> (Option<u64>, Option<u64>) {
        let flags = self.flags;
        self.flags &= !(SETS_SLICE | SETS_VTIME);
        (
            (flags & SETS_SLICE != 0).then_some(self.slice),
            (flags & SETS_VTIME != 0).then_some(self.vtime),
        )
    }

    /// Whose tasks it shows.
    pub(super) fn place(&self) -> Place {
        Place::User(self.queue as usize)
    }
}

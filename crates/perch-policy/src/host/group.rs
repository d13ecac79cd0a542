// SPDX-License-Identifier: GPL-2.0-or-later
//! The task groups of a host: where each has something queued.

use super::Host;
use crate::image::Image;
use crate::task::{GroupId, TaskState};

impl Host {
    /// Adds a task group that has nothing queued anywhere.
    pub fn add_group(&mut self) -> GroupId {
        self.queued.push(vec![0; self.idle_words().len()].into());
        GroupId(self.queued.len() as u32 - 1)
    }

    /// The first group, added if there is none: for tests that know one at a time.
    #[doc(hidden)]
    pub fn only_group(&mut self) -> GroupId {
        if self.queued.is_empty() {
            self.add_group();
        }
        GroupId(0)
    }

    /// Says whether the group itself, not one below it, has something runnable queued on the CPU;
    /// sleepers that EEVDF keeps queued do not count.
    pub fn set_queued(&mut self, group: GroupId, cpu: usize, is: bool) {
        let word = &mut self.queued[group.0 as usize][cpu / 64];
        let bit = 1 << (cpu % 64);
        *word = if is { *word | bit } else { *word & !bit };
    }

    /// True if the group has something runnable queued on the CPU.
    pub fn is_queued(&self, group: GroupId, cpu: usize) -> bool {
        self.queued[group.0 as usize][cpu / 64] >> (cpu % 64) & 1 != 0
    }

    /// The words of the task's group laid out in another address space; their address, 0 for the
    /// root group.
    pub(crate) fn place_group(&self, task: &TaskState, image: &mut Image) -> u64 {
        let group = task.group().map(|g| &self.queued[g.0 as usize]);
        group.map_or(0, |words| image.push(words))
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The tasks of a block, each with the row that was written of it last. Every wake-up looks up two
//! tasks, which took a quarter of a replay's time with the standard library's keyed hash. A file whose
//! keys were made to collide is read slowly, and no other harm comes of it.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::moment::{Row, TaskRow};

/// Rows by task.
#[derive(Debug, Default)]
pub struct Tasks {
    slots: HashMap<u64, u32, FixedState>,
    rows: Vec<Row<TaskRow>>,
}

impl Tasks {
    /// Forgets all tasks.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.rows.clear();
    }

    /// Returns the place of a task's row; a task that is not known yet gets a row of zeros.
    pub fn slot(&mut self, key: u64) -> usize {
        let next = self.rows.len();
        let slot = *self.slots.entry(key).or_insert(next as u32) as usize;
        if slot == next {
            self.rows.push(Row::default());
        }
        slot
    }

    pub fn row(&self, slot: usize) -> &Row<TaskRow> {
        &self.rows[slot]
    }

    /// Returns a task's row, to be changed.
    pub fn row_mut(&mut self, slot: usize) -> &mut Row<TaskRow> {
        &mut self.rows[slot]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::Task;
    use proptest::prelude::*;

    proptest! {
        /// The table answers as any map does.
        #[test]
        fn rows_belong_to_their_keys(keys in prop::collection::vec(0..40u64, 1..200)) {
            let mut tasks = Tasks::default();
            let mut plain = std::collections::BTreeMap::<u64, u64>::new();
            for (i, &key) in keys.iter().enumerate() {
                let key = key << (key % 30);
                let slot = tasks.slot(key);
                prop_assert_eq!(tasks.row(slot)[Task::Load], plain.get(&key).copied().unwrap_or(0));
                tasks.row_mut(slot)[Task::Load] = i as u64;
                plain.insert(key, i as u64);
            }
            tasks.clear();
            let slot = tasks.slot(keys[0]);
            prop_assert_eq!(tasks.row(slot), &Row::default());
        }
    }
}

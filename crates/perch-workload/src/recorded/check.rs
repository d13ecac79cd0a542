// SPDX-License-Identifier: GPL-2.0-or-later
//! The check that a script comes to its end on any machine.

use std::collections::BTreeMap;

use super::error::{ScriptError, Unending};
use super::script::{Script, Step};

impl Script {
    /// Refuses a script in which a step names a task that does not exist, a task is forked never or
    /// twice, or a task waits forever. A task that wakes another never blocks, and a task waits for
    /// one certain task, whichever others are faster. So either all orders of the steps come to the
    /// end or none does, and this function tries only one.
    ///
    /// # Errors
    /// The first task that this function finds at fault.
    pub fn check(&self) -> Result<(), ScriptError> {
        let count = self.tasks.len();
        if count == 0 {
            return Err(Unending::NoTasks.of(0));
        }
        let mut parent: Vec<Option<usize>> = vec![None; count];
        for (number, task) in self.tasks.iter().enumerate() {
            for step in &task.steps {
                let (Step::Wake(other) | Step::Await(other) | Step::Fork(other)) = *step else {
                    continue;
                };
                let other = other as usize;
                if other >= count || other == number {
                    let last = count - 1;
                    return Err(Unending::NoSuchTask { other, last }.of(number));
                }
                if matches!(step, Step::Fork(_)) && parent[other].replace(number).is_some() {
                    return Err(Unending::ForkedTwice { child: other }.of(number));
                }
            }
        }
        for (number, task) in self.tasks.iter().enumerate() {
            match (task.start, parent[number]) {
                (Some(_), Some(parent)) => {
                    return Err(Unending::StartsAndForked { parent }.of(number));
                }
                (None, None) => return Err(Unending::NeverForked.of(number)),
                _ => {}
            }
        }
        self.ends()
    }

    /// Does all steps in one order, and refuses a script that does not come to its end.
    fn ends(&self) -> Result<(), ScriptError> {
        let mut at = vec![0usize; self.tasks.len()];
        let mut posted: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        // For each task that waits, the task that it waits for.
        let mut waits: Vec<Option<u32>> = vec![None; self.tasks.len()];
        let mut ready: Vec<u32> = (0..self.tasks.len() as u32)
            .filter(|&task| self.tasks[task as usize].start.is_some())
            .collect();
        let mut born: Vec<bool> = self.tasks.iter().map(|task| task.start.is_some()).collect();
        while let Some(task) = ready.pop() {
            let steps = &self.tasks[task as usize].steps;
            while let Some(step) = steps.get(at[task as usize]) {
                match *step {
                    Step::Await(by) => {
                        let left = posted.entry((by, task)).or_default();
                        if *left == 0 {
                            waits[task as usize] = Some(by);
                            break;
                        }
                        *left -= 1;
                    }
                    Step::Wake(other) => {
                        *posted.entry((task, other)).or_default() += 1;
                        if waits[other as usize] == Some(task) {
                            waits[other as usize] = None;
                            ready.push(other);
                        }
                    }
                    Step::Fork(child) => {
                        born[child as usize] = true;
                        ready.push(child);
                    }
                    _ => {}
                }
                at[task as usize] += 1;
            }
        }
        for number in 0..self.tasks.len() {
            if let Some(by) = waits[number] {
                let (task, done) = (number, at[number]);
                return Err(Unending::WaitsForever { task, done, by }.of(number));
            }
            if !born[number] {
                return Err(Unending::ParentNeverForks.of(number));
            }
        }
        Ok(())
    }
}

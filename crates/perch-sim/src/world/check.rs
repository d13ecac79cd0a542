// SPDX-License-Identifier: GPL-2.0-or-later
//! The conditions that hold of the whole world between any two moments, for tests.

use perch_sched::check::Auditor;
use perch_sched::{Life, Sched, Violation, hold};

use super::event;
use super::state::World;
use crate::id::{Id, TaskId};

impl World {
    /// Walks over everything that there is; an error says what does not hold.
    pub(super) fn check(
        &mut self,
        sched: &mut Sched<'_>,
        auditor: &mut Auditor,
    ) -> Result<(), Violation> {
        let (programs, mut here) = self.here(sched);
        programs.see_streaks(&mut here);
        let mut reasons = vec![0; sched.nr_tasks()];
        let mut forks = vec![0; sched.nr_tasks()];
        self.programs.add_reasons(&mut reasons);
        for event in sched.events().iter() {
            match event.kind {
                event::TIMER => reasons[TaskId(event.key).index()] += 1,
                event::FORK => forks[TaskId(event.key).index()] += 1,
                _ => {}
            }
        }
        self.guests.check_places(sched, &reasons)?;
        for (id, &forks) in (0..).map(TaskId).zip(&forks) {
            let life = self.life(sched, id);
            hold!(forks <= u32::from(life == Life::Unborn), "task {id} will be forked again");
            // The scheduler knows nothing of tasks that are not this machine's.
            if self.guests.life(id).is_some() {
                reasons[id.index()] = 0;
            }
        }
        self.guests.add_reasons(sched, &mut reasons);
        auditor.check(sched, &reasons)?;
        self.programs.check(&|task| self.life(sched, task))?;
        self.guests.check(sched)
    }

    /// Where a task is in its life, wherever it is.
    pub(super) fn life(&self, sched: &Sched<'_>, task: TaskId) -> Life {
        self.guests.life(task).unwrap_or_else(|| sched.life(task))
    }
}

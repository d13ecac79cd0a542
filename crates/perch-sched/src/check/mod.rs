// SPDX-License-Identifier: GPL-2.0-or-later
//! What must hold between any two moments of a run, for tests: the books of every queue, every
//! task in exactly one place with exactly one reason to wake (P13 of docs/testing.md#properties), no task
//! where it may not be (P1).

use crate::core::{Life, Sched, kind};
use crate::hold;
use crate::id::{Id, IdVec, TaskId};

mod glimpse;

#[doc(hidden)]
pub use glimpse::{CpuGlimpse, Glimpse, LoadGlimpse, TaskGlimpse};

/// What a check remembers of the one before.
#[derive(Debug, Default)]
pub struct Auditor {
    floors: Vec<i64>,
}

impl Auditor {
    /// Walks over all queues, CPUs and tasks. `reasons` has, for each task of this machine, how many
    /// things will wake it: messages and locks that it waits for, timers.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check(&mut self, sched: &Sched<'_>, reasons: &[u32]) -> Result<(), String> {
        let walk = || {
            sched.check_places(reasons)?;
            for cpu in 0..sched.cpus.len() {
                sched
                    .check_cpu(cpu)
                    .map_err(|e| format!("cpu {cpu}: {e}"))?;
            }
            sched.check_queues()?;
            sched.check_averages()?;
            sched.check_groups()?;
            sched.check_rt()?;
            sched.check_caches()
        };
        let floors = sched.floors();
        let fell = self
            .floors
            .iter()
            .zip(&floors)
            .position(|(before, now)| now < before);
        let result = walk().and_then(|()| match fell {
            Some(queue) => Err(format!("queue {queue}: min_vruntime went back")),
            None => Ok(()),
        });
        self.floors = floors;
        result
    }
}

impl Sched<'_> {
    /// Every task is in exactly as many places as its life allows.
    fn check_places(&self, reasons: &[u32]) -> Result<(), String> {
        // Per task: on timelines, running, on wake lists.
        let mut places = IdVec::<TaskId, [u32; 3]>::from_iter(self.tasks.iter().map(|_| [0; 3]));
        for (cpu, c) in self.cpus.iter().enumerate() {
            let waiting = self.rt_waiting(cpu);
            waiting.for_each(|t| places[t][0] += 1);
            c.current.iter().for_each(|&t| places[t][1] += 1);
            c.inbox.tasks().iter().for_each(|&t| places[t][2] += 1);
        }
        let waiting = self.fair_waiting();
        waiting.for_each(|t| places[t][0] += 1);
        for (id, t) in self.tasks.named() {
            let at = &places[id];
            let delayed = self.is_delayed(id);
            let expected = match t.life {
                Life::Unborn | Life::Dead => [0, 0, 0],
                Life::Asleep => [delayed.into(), 0, 0],
                Life::Waking => [0, 0, 1],
                Life::Queued => [1, 0, 0],
                Life::Running => [0, 1, 0],
            };
            hold!(
                *at == expected,
                "task {id} is {:?}, yet on {} timelines, {} CPUs, {} wake lists",
                t.life,
                at[0],
                at[1],
                at[2]
            );
            let (reasons, wanted) = (reasons[id.index()], u32::from(t.life == Life::Asleep));
            hold!(
                reasons == wanted,
                "task {id} is {:?} with {reasons} reasons to wake",
                t.life
            );
            let allowed = &self.affinities[t.affinity];
            hold!(
                t.life == Life::Unborn || allowed.contains(t.cpu),
                "task {id} on cpu {}",
                t.cpu
            );
            hold!(
                !delayed || t.life == Life::Asleep,
                "task {id} is delayed and {:?}",
                t.life
            );
            hold!(
                !self.on_queue(id) || self.is_attached(id) == self.is_balanced(id),
                "task {id} is queued but not attached"
            );
        }
        Ok(())
    }

    /// The CPU is as idle as it seems, and somebody will look after what it has to do.
    fn check_cpu(&self, cpu: usize) -> Result<(), String> {
        let (c, nr) = (&self.cpus[cpu], self.nr(cpu));
        hold!(
            self.cpus[cpu].idleness.is_idle() == c.current.is_none(),
            "idle {} with current {:?}",
            self.cpus[cpu].idleness.is_idle(),
            c.current
        );
        let free = c.current.is_none() && nr == 0 && c.inbox.tasks().is_empty();
        let says = self.host.is_idle(cpu);
        hold!(
            says == free,
            "idle bit {says}: current {:?}, {nr} queued, {} to come",
            c.current,
            c.inbox.tasks().len()
        );
        let of = |kind| {
            self.events
                .iter()
                .filter(move |e| e.kind == kind && e.key as usize == cpu)
        };
        let interrupts = of(kind::IPI).count();
        let sent = usize::from(c.inbox.is_told());
        hold!(
            interrupts == sent,
            "{interrupts} interrupts on their way, not {sent}"
        );
        hold!(
            c.inbox.is_told() || c.inbox.tasks().is_empty(),
            "nobody tells of {:?}",
            c.inbox.tasks()
        );
        hold!(
            c.inbox.is_told() || nr == 0 || c.current.is_some(),
            "idles with {nr} queued"
        );
        if c.current.is_some() {
            let ends = of(kind::SEGMENT)
                .filter(|e| e.tag == c.segment.tag())
                .count();
            hold!(ends == 1, "{ends} ends of the running segment");
        }
        let state = self.host.cpu(cpu);
        hold!(
            state.nr_running == nr,
            "the policy sees {} of {nr} tasks",
            state.nr_running
        );
        hold!(
            state.nr_delayed == self.nr_delayed(cpu),
            "the policy sees other delayed tasks"
        );
        self.check_balance(cpu)
    }
}

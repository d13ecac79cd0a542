// SPDX-License-Identifier: GPL-2.0-or-later
//! The invariants that must hold between any two moments of a run, for tests: the books of every
//! queue agree with its tasks, every task is in exactly one place and has exactly one reason to
//! wake (P13 of docs/testing.md#properties), and no task is where it may not be (P1).

use crate::core::{Life, Sched, kind};
use crate::id::{Id, IdVec, TaskId};
use crate::{Violation, hold};

mod glimpse;

#[doc(hidden)]
pub use glimpse::{CpuGlimpse, Glimpse, LoadGlimpse, TaskGlimpse};

/// The events that are on their way to a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Coming {
    interrupts: usize,
    /// Ends of the segment that runs.
    ends: usize,
}

/// The state that a check compares with that of the check before.
#[derive(Debug, Default)]
pub struct Auditor {
    floors: Vec<i64>,
    /// By CPU; every check counts anew.
    coming: Vec<Coming>,
}

impl Auditor {
    /// Walks over all queues, CPUs and tasks. `reasons` has, for each task of this machine, how
    /// many things will wake it: messages and locks that it waits for, and timers.
    ///
    /// # Errors
    /// The invariant that does not hold.
    pub fn check(&mut self, sched: &Sched<'_>, reasons: &[u32]) -> Result<(), Violation> {
        self.coming.clear();
        self.coming.resize(sched.nr_cpus(), Coming::default());
        let mut rounds = Vec::new();
        for event in sched.events().iter() {
            let cpu = event.key as usize;
            match event.kind {
                kind::IPI => self.coming[cpu].interrupts += 1,
                kind::PUSH => rounds.push(cpu),
                kind::SEGMENT if event.tag == sched.segment_tag(cpu) => {
                    self.coming[cpu].ends += 1;
                }
                _ => {}
            }
        }
        let walk = || {
            sched.check_places(reasons)?;
            for (cpu, &coming) in self.coming.iter().enumerate() {
                sched.check_cpu(cpu, coming).map_err(|e| e.within(format_args!("cpu {cpu}")))?;
            }
            let round = sched.rq.round_at();
            hold!(
                rounds.iter().copied().eq(round),
                "a round is at {round:?}, its interrupts go to {rounds:?}"
            );
            sched.rq.check_queues(&sched.host)?;
            sched.rq.check_averages()?;
            sched.rq.check_ext()?;
            sched.check_groups()?;
            sched.rq.check_rt(&|cpu| sched.inbox(cpu).is_told())?;
            sched.check_caches()
        };
        let floors = sched.rq.floors();
        let fell = self.floors.iter().zip(&floors).position(|(before, now)| now < before);
        let result = walk().and_then(|()| match fell {
            Some(queue) => Err(Violation::new(format!("queue {queue}: min_vruntime went back"))),
            None => Ok(()),
        });
        self.floors = floors;
        result
    }
}

impl Sched<'_> {
    /// Checks that every task is in exactly as many places as its life allows.
    fn check_places(&self, reasons: &[u32]) -> Result<(), Violation> {
        // The places of each task: timelines, CPUs that run it, inboxes.
        let mut places = IdVec::<TaskId, [u32; 3]>::from_iter(self.rq.tasks().map(|_| [0; 3]));
        for cpu in 0..self.nr_cpus() {
            let waiting = self.rq.rt_waiting(cpu);
            waiting.for_each(|t| places[t][0] += 1);
            let current = self.rq.current(cpu);
            current.iter().for_each(|&t| places[t][1] += 1);
            let coming = self.inbox(cpu).tasks();
            coming.iter().for_each(|&t| places[t][2] += 1);
        }
        let waiting = self.rq.fair_waiting();
        waiting.for_each(|t| places[t][0] += 1);
        let waiting = self.rq.ext_waiting();
        waiting.into_iter().for_each(|t| places[t][0] += 1);
        for (id, t) in self.rq.tasks() {
            let at = &places[id];
            let delayed = self.rq.is_delayed(id);
            let expected = match t.life() {
                Life::Unborn | Life::Dead => [0, 0, 0],
                Life::Asleep => [delayed.into(), 0, 0],
                Life::Waking => [0, 0, 1],
                Life::Queued => [1, 0, 0],
                Life::Running => [0, 1, 0],
            };
            hold!(
                *at == expected,
                "task {id} is {:?}, yet on {} timelines, {} CPUs, {} wake lists",
                t.life(),
                at[0],
                at[1],
                at[2]
            );
            let (reasons, wanted) = (reasons[id.index()], u32::from(t.life() == Life::Asleep));
            hold!(reasons == wanted, "task {id} is {:?} with {reasons} reasons to wake", t.life());
            let allowed = self.rq.allowed(id);
            hold!(
                t.life() == Life::Unborn || allowed.contains(t.cpu()),
                "task {id} on cpu {}",
                t.cpu()
            );
            hold!(!delayed || t.life() == Life::Asleep, "task {id} is delayed and {:?}", t.life());
            hold!(
                !self.rq.balances()
                    || !self.rq.on_queue(id)
                    || self.rq.is_attached(id) == self.rq.is_balanced(id),
                "task {id} is queued but not attached"
            );
        }
        Ok(())
    }

    /// Checks that the CPU is idle exactly if it seems to be, and that an event is pending for what
    /// it has to do.
    fn check_cpu(&self, cpu: usize, coming: Coming) -> Result<(), Violation> {
        let (inbox, nr) = (self.inbox(cpu), self.rq.nr(cpu));
        let current = self.rq.current(cpu);
        hold!(
            self.rq.idleness(cpu).is_idle() == current.is_none() || self.searches_for_task(cpu),
            "idle {} with current {:?}",
            self.rq.idleness(cpu).is_idle(),
            current
        );
        let free = current.is_none()
            && nr == 0
            && inbox.tasks().is_empty()
            && self.leaves_for_ns(cpu) == 0
            && !self.searches_for_task(cpu);
        let says = self.host.is_idle(cpu);
        hold!(
            says == free || says && (self.is_claimed(cpu) || self.takes_off_list(cpu)),
            "idle bit {says}: current {:?}, {nr} queued, {} to come",
            current,
            inbox.tasks().len()
        );
        let sent = usize::from(inbox.is_told());
        hold!(
            coming.interrupts == sent,
            "{} interrupts on their way, not {sent}",
            coming.interrupts
        );
        // Nobody would tell it of the next wakee.
        hold!(
            !free || inbox.is_told() || !self.rq.need_resched(cpu),
            "idles though it was asked to reschedule"
        );
        hold!(inbox.is_told() || inbox.tasks().is_empty(), "nobody tells of {:?}", inbox.tasks());
        hold!(
            inbox.is_told() || nr == self.rq.nr_ext(cpu) || current.is_some(),
            "idles with {nr} queued"
        );
        hold!(current.is_none() || coming.ends == 1, "{} ends of the running segment", coming.ends);
        let state = self.host.cpu(cpu);
        hold!(state.nr_running == nr, "the policy sees {} of {nr} tasks", state.nr_running);
        hold!(state.nr_delayed == self.rq.nr_delayed(cpu), "the policy sees other delayed tasks");
        self.check_balance(cpu)
    }
}

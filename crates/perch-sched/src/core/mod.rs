// SPDX-License-Identifier: GPL-2.0-or-later
//! The core: CPUs and tasks, and what becomes of them when a task wakes up, a segment of its work
//! ends, an interrupt arrives or a tick comes. The classes and the balancer work on the same state.
//!
//! One event at a time is handled, in order of time and arrival; nothing here reads a clock, walks
//! a hash map or draws an unseeded number.

mod affinity;
mod boot;
mod chores;
mod contend;
mod contended;
pub(crate) mod cpu;
mod idle;
mod idleness;
mod inbox;
mod interrupt;
mod ipi;
mod life;
mod publish;
mod run;
mod segment;
pub(crate) mod task;
mod tick;
mod view;
mod wake;
mod warmth;
mod watch;

use std::sync::Arc;

use perch_engine::{Event, EventQueue, Random};
use perch_policy::{CpuMask, Host, Policy, TaskState};

use crate::balance::BalanceState;
use crate::cache;
use crate::class::fair::FairState;
use crate::class::rt;
use crate::era::EraRules;
use crate::hardware::{Costs, Llcs};
use crate::id::{IdVec, MaskId, TaskId};
use crate::observe::{Counts, Observed, Observer};

use contended::Contended;
use cpu::Cpu;
pub(crate) use task::Task;
use watch::Watch;

pub use life::{Life, Waker};
pub use segment::{Ended, Rounds};

/// The kinds of events that belong to the scheduler, by the number that stands in [`Event::kind`].
/// Whoever owns the run gives its own events other numbers; which come first among the events of
/// one moment is told in docs/architecture.md.
pub mod kind {
    /// The running task's segment ends; the key is the CPU.
    pub const SEGMENT: u8 = 0;
    /// An interrupt reaches a CPU, the key: woken tasks to enqueue, or a request to reschedule.
    pub const IPI: u8 = 1;
    /// Every CPU's tick.
    pub const TICK: u8 = 4;
}

/// What runs on the CPUs. The scheduler knows no more of it than that a task goes on when it has a
/// CPU and nothing left of the work that it was given.
pub trait Programs {
    /// `task` runs on `cpu` and has no work left: it does what comes next, which may take time, wake
    /// others, put it to sleep or end it.
    fn advance(&mut self, sched: &mut Sched<'_>, cpu: usize, task: TaskId);

    /// `task`, which was set up as one that [`NewTask::carries`] others, has just got `cpu`, with or
    /// without work left.
    fn enter(&mut self, sched: &mut Sched<'_>, cpu: usize, task: TaskId);
}

/// The scheduler of a machine.
pub struct Sched<'a> {
    pub(crate) now: u64,
    pub(crate) events: EventQueue,
    pub(crate) host: Host,
    pub(crate) policy: Policy,
    pub(crate) rules: EraRules,
    pub(crate) costs: Costs,
    /// What the last-level caches hold, where some process's threads share something.
    pub(crate) llcs: Option<Llcs>,
    /// The kernel's contended cache lines.
    lines: Contended,
    /// The CPU that is at work: it pays for what the kernel does.
    pub(crate) acting: usize,
    pub(crate) tick_ns: u64,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) tasks: IdVec<TaskId, Task>,
    /// The tasks' affinities, each stored once.
    pub(crate) affinities: IdVec<MaskId, Arc<CpuMask>>,
    /// What the policy remembers of each CPU's idle task, the waker of timer interrupts.
    pub(crate) idle_tasks: Vec<TaskState>,
    /// CPUs differ in capacity.
    pub(crate) unequal: bool,
    /// The real-time class's part of the root domain, if any task is in it.
    pub(crate) rt: Option<Box<rt::RtDomain>>,
    /// Kind and key of the event that is handled.
    pub(crate) handled: (u8, u32),
    pub(crate) counts: Counts,
    pub(crate) random: Random,
    pub(crate) watch: Watch<'a>,
    /// What the fair class knows.
    pub(crate) fair: FairState,
    /// What the balancer knows.
    pub(crate) balance: BalanceState,
    /// What the cache mechanism is told.
    pub(crate) caches: cache::CacheBooks,
}

impl<'a> Sched<'a> {
    /// Tells `observer` what happens from now on.
    pub fn observe(&mut self, observer: Box<dyn Observer + 'a>) {
        self.watch.set(observer);
    }

    /// The observer, who is told nothing any more.
    pub fn take_observer(&mut self) -> Option<Box<dyn Observer + 'a>> {
        self.watch.take()
    }

    /// The error with which the observer refused something since this was asked last.
    pub fn take_observer_error(&mut self) -> Option<std::io::Error> {
        self.watch.take_error()
    }
}

impl Sched<'_> {
    /// Whether somebody looks on.
    #[inline]
    pub(crate) fn is_observed(&self) -> bool {
        self.watch.is_any()
    }

    #[cold]
    pub(crate) fn tell(&mut self, what: &Observed<'_>) {
        self.watch.tell(self.now, what);
    }

    /// Has something happen at `at_ns`, which is not past.
    #[inline]
    pub fn at(&mut self, at_ns: u64, kind: u8, key: u32, tag: u32) {
        self.events.push(Event {
            at_ns,
            kind,
            key,
            tag,
        });
    }

    /// An idle CPU has another stretch of the kernel's own work to do, which takes `ns`.
    pub(crate) fn add_chore(&mut self, cpu: usize, ns: u64) {
        if self.costs.tick_ns() > 0 {
            self.cpus[cpu].chores.add(self.now, ns);
        }
    }
}

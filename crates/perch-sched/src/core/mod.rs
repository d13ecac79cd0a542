// SPDX-License-Identifier: GPL-2.0-or-later
//! The core: CPUs and tasks, and what becomes of them when a task wakes up, a segment of its work
//! ends, an interrupt arrives or a tick comes. The classes and the balancer work on the same state.
//!
//! One event at a time is handled, in order of time and arrival; nothing here reads a clock, walks
//! a hash map or draws an unseeded number.

mod chores;
mod contend;
pub(crate) mod cpu;
mod idle;
mod run;
mod setup;
pub(crate) mod streak;
pub(crate) mod task;
mod tick;
mod view;
mod wake;

use std::sync::Arc;

use perch_engine::{Event, EventQueue, Random};
use perch_policy::{CpuMask, Host, Policy, TaskState};

use crate::balance;
use crate::cache;
use crate::class::fair::group;
use crate::class::fair::queue::Fair;
use crate::class::rt;
use crate::era::EraRules;
use crate::hardware::{Costs, Lines, Llcs};
use crate::observe::{Counts, Observed, Observer};

use cpu::Cpu;
use task::{Entity, Task};

pub use setup::{NewGroup, NewTask, Setup};
pub use streak::{Ended, Rounds};
pub use task::Life;
pub use wake::Waker;

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
    fn advance(&mut self, sched: &mut Sched<'_>, cpu: usize, task: u32);

    /// `task`, which was set up as one that [`NewTask::carries`] others, has just got `cpu`, with or
    /// without work left.
    fn enter(&mut self, sched: &mut Sched<'_>, cpu: usize, task: u32);
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
    /// The kernel's contended cache lines, where the machine has figures for them.
    pub(crate) lines: Option<Lines>,
    /// The CPU that is at work: it pays for what the kernel does.
    pub(crate) acting: usize,
    pub(crate) tick_ns: u64,
    pub(crate) cpus: Vec<Cpu>,
    /// The fair class's queues: the CPUs', then those of groups on CPUs.
    pub(crate) queues: Vec<Fair>,
    pub(crate) tasks: Vec<Task>,
    /// What stands in queues: the tasks (of a real-time one only the run time counts), then groups.
    pub(crate) entities: Vec<Entity>,
    /// The tasks' affinities, each stored once.
    pub(crate) affinities: Vec<Arc<CpuMask>>,
    /// What the policy remembers of each CPU's idle task, the waker of timer interrupts.
    pub(crate) idle_tasks: Vec<TaskState>,
    /// CPUs with more than one task, by words of 64.
    pub(crate) crowded: Vec<u64>,
    /// CPUs differ in capacity.
    pub(crate) unequal: bool,
    /// The largest capacity of a CPU.
    pub(crate) largest: u32,
    /// Some queue has more than one task, or a CPU a task that does not fit it (the root domain's
    /// flag; set early, cleared lazily).
    pub(crate) overload: bool,
    /// The real-time class's part of the root domain, if any task is in it.
    pub(crate) rt: Option<Box<rt::RtDomain>>,
    /// Kind and key of the event that is handled.
    pub(crate) handled: (u8, u32),
    /// Times that any task was queued or picked.
    pub(crate) turns: u64,
    /// Next time the averages of idle CPUs are brought up to date.
    pub(crate) decay_next_ns: u64,
    /// Next time idle CPUs are balanced on their behalf.
    pub(crate) nohz_next_ns: u64,
    pub(crate) counts: Counts,
    pub(crate) random: Random,
    observer: Option<Box<dyn Observer + 'a>>,
    observer_error: Option<std::io::Error>,
    /// The groups of every domain and what runs in them.
    pub(crate) groups: balance::Groups,
    /// Working memory of the balancer.
    pub(crate) scratch: balance::Scratch,
    /// What the cache mechanism is told.
    pub(crate) caches: cache::CacheBooks,
    /// The task groups.
    pub(crate) task_groups: group::TaskGroups,
}

impl<'a> Sched<'a> {
    /// Tells `observer` what happens from now on.
    pub fn observe(&mut self, observer: Box<dyn Observer + 'a>) {
        self.observer = Some(observer);
    }

    /// The observer, who is told nothing any more.
    pub fn take_observer(&mut self) -> Option<Box<dyn Observer + 'a>> {
        self.observer.take()
    }

    /// The error with which the observer refused something since this was asked last.
    pub fn take_observer_error(&mut self) -> Option<std::io::Error> {
        self.observer_error.take()
    }
}

impl Sched<'_> {
    /// Whether somebody looks on.
    #[inline]
    pub(crate) fn is_observed(&self) -> bool {
        self.observer.is_some()
    }

    #[cold]
    pub(crate) fn tell(&mut self, what: &Observed<'_>) {
        let told = (self.observer.as_mut()).map_or(Ok(()), |observer| observer.see(self.now, what));
        if let Err(error) = told {
            self.observer_error.get_or_insert(error);
        }
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
}

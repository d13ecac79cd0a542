// SPDX-License-Identifier: GPL-2.0-or-later
//! The core: the CPUs, the tasks, and what the scheduler does when a task wakes up, a segment of
//! its work ends, an interrupt arrives or a tick comes. The classes and the balancer work on the
//! same state.
//!
//! The core handles one event at a time, in order of time and arrival. Nothing here reads a clock,
//! walks over a hash map or draws an unseeded number.

mod balance;
mod boot;
mod chores;
mod claims;
mod contend;
mod contended;
pub(crate) mod cpu;
mod ext;
mod idle;
mod inbox;
mod interrupt;
mod ipi;
mod later;
mod leaving;
mod life;
mod publish;
mod queue;
mod run;
mod search;
mod segment;
mod select;
mod tick;
mod time;
mod view;
mod wake;
mod warmth;
mod watch;
mod work;

use perch_engine::{Event, EventQueue};
use perch_policy::{Host, Policy, TaskState};

use crate::balance::BalanceState;
use crate::cache;
use crate::class::RunQueues;
use crate::era::EraRules;
use crate::hardware::{Costs, Llcs};
use crate::id::TaskId;
use crate::observe::{Counts, Observed, Observer};

use contended::Contended;
use cpu::Cpu;
use later::Later;
use watch::Watch;

pub use life::{Life, Waker};
pub use segment::{Ended, Rounds};

/// The kinds of the scheduler's events, by the number that [`Event::kind`] holds. The owner of the
/// run gives its own events other numbers; docs/architecture.md says which event comes first among
/// those of one moment.
pub mod kind {
    /// The running task's segment ends; the key is the CPU.
    pub const SEGMENT: u8 = 0;
    /// An interrupt reaches a CPU, which is the key: the CPU has woken tasks to enqueue, or was
    /// asked to reschedule.
    pub const IPI: u8 = 1;
    /// A tick of all CPUs.
    pub const TICK: u8 = 4;
    /// The interrupt that asks a CPU, which is the key, to push its real-time tasks.
    pub const PUSH: u8 = 7;
    /// A timer of an outside scheduler; the key is the CPU that started it, the tag its own key.
    pub const EXT: u8 = 8;
}

/// The programs that run on the CPUs. All that the scheduler knows of a program is that its task
/// goes on when the task has a CPU and none of its work is left.
pub trait Programs {
    /// `task` runs on `cpu` and has no work left. The program does its next operation, which may
    /// take time, wake other tasks, put the task to sleep or end it.
    fn advance(&mut self, sched: &mut Sched<'_>, cpu: usize, task: TaskId);

    /// `task`, which was set up as one that carries others ([`crate::NewTask::carries`]), has just
    /// got `cpu`, with or without work left.
    fn enter(&mut self, sched: &mut Sched<'_>, cpu: usize, task: TaskId);
}

/// The scheduler of a machine.
pub struct Sched<'a> {
    /// The run queues, and the time.
    pub(crate) rq: RunQueues,
    events: EventQueue,
    pub(crate) host: Host,
    pub(crate) policy: Policy,
    /// True where the policy decides by the length of tasks' turns.
    notes_turns: bool,
    pub(crate) costs: Costs,
    /// The contents of the last-level caches, on a machine where the threads of some process share
    /// data.
    llcs: Option<Llcs>,
    /// The kernel's contended cache lines.
    lines: Contended,
    /// The CPU that executes kernel code at this moment: the time is charged to it.
    acting: usize,
    cpus: Vec<Cpu>,
    /// The CPUs that are about to idle, and the wakers that are not done.
    later: Later,
    /// The policy's state of each CPU's idle task, which is the waker of timer interrupts.
    idle_tasks: Vec<TaskState>,
    /// The rules of the stock kernel.
    rules: EraRules,
    /// The kind and the key of the event that is being handled.
    handled: (u8, u32),
    counts: Counts,
    watch: Watch<'a>,
    /// The balancer's state.
    pub(crate) balance: BalanceState,
    /// The cache mechanism's books: its counts for processes and LLCs.
    pub(crate) caches: cache::CacheBooks,
}

impl<'a> Sched<'a> {
    /// Makes `observer` the one that is told what happens from now on.
    pub fn observe(&mut self, observer: Box<dyn Observer + 'a>) {
        self.watch.set(observer);
    }

    /// Takes the observer away, so that it is told nothing more, and returns it.
    pub fn take_observer(&mut self) -> Option<Box<dyn Observer + 'a>> {
        self.watch.take()
    }

    /// Returns the error with which the observer refused an event since this was last called.
    pub fn take_observer_error(&mut self) -> Option<std::io::Error> {
        self.watch.take_error()
    }
}

impl Sched<'_> {
    /// Tells the readers of events what happened: the counts, which every run has, and the
    /// observer, if there is one. The caller names the kind of the event, so that the counts' part
    /// is compiled to what that kind changes; the event itself is only put together for an
    /// observer, which is why it is handed over by value.
    #[inline(always)]
    pub(crate) fn happened(&mut self, what: Observed<'_>) {
        self.counts.see(&what);
        if self.watch.is_any() {
            self.tell(what);
        }
    }

    #[cold]
    #[inline(never)]
    fn tell(&mut self, what: Observed<'_>) {
        self.watch.tell(self.rq.now(), &what);
    }

    /// Schedules an event of this kind, key and tag for `at_ns`, which must not lie in the past.
    #[inline]
    pub fn at(&mut self, at_ns: u64, kind: u8, key: u32, tag: u32) {
        self.events.push(Event { at_ns, kind, key, tag });
    }

    /// Adds a stretch of `ns` nanoseconds of the kernel's own work to what an idle CPU has to do.
    pub(crate) fn add_chore(&mut self, cpu: usize, ns: u64) {
        if self.costs.tick_ns() > 0 {
            self.cpus[cpu].chores.add(self.rq.now(), ns);
        }
    }
}

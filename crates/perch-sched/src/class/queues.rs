// SPDX-License-Identifier: GPL-2.0-or-later
//! The run queues: what runs and waits on each CPU, the classes' state, and the clock.

use std::sync::Arc;

use perch_policy::{CpuMask, GroupId, Topology};

use super::effect::Effect;
use super::ext::{ExtQueue, ExtState};
use super::fair::FairState;
use super::idleness::Idleness;
use super::pelt::Clock;
use super::rt::{self, RtDomain, RtQueue};
use super::task::Task;
use crate::era::EraRules;
use crate::hardware::{Access, Field, Symbol};
use crate::id::{IdVec, MaskId, TaskId};
use crate::setup::Setup;

/// The run queues of all CPUs, and the tasks in them.
pub(crate) struct RunQueues {
    pub(in crate::class) now: u64,
    pub(in crate::class) rules: EraRules,
    pub(in crate::class) tick_ns: u64,
    pub(in crate::class) cpus: Vec<RunQueue>,
    pub(in crate::class) tasks: IdVec<TaskId, Task>,
    /// The tasks' affinities, each stored once.
    pub(in crate::class) affinities: IdVec<MaskId, Arc<CpuMask>>,
    /// True if the CPUs differ in capacity.
    pub(in crate::class) unequal: bool,
    /// The fair class's state that belongs to no single CPU.
    pub(in crate::class) fair: FairState,
    /// The real-time class's part of the root domain, if any task is of that class.
    pub(in crate::class) rt: Option<Box<RtDomain>>,
    /// The scheduler in place of the fair class, if there is one.
    pub(in crate::class) ext: ExtState,
    /// The side effects of operations, until the core takes them.
    pub(in crate::class) effects: Vec<Effect>,
    /// True if accesses to contended lines cost anything on this machine.
    pub(in crate::class) has_lines: bool,
    pub(in crate::class) topology: Arc<Topology>,
}

/// The arguments of [`RunQueues::new`], beside the tasks.
pub(crate) struct New<'n> {
    pub setup: &'n Setup<'n>,
    pub rules: EraRules,
    /// The task groups of `setup` as the policy knows them.
    pub groups: &'n [GroupId],
    /// See [`RunQueues::has_lines`].
    pub has_lines: bool,
}

impl RunQueues {
    /// Returns the queues of a machine on which nothing has run yet. `tasks` are those of the setup,
    /// in its order.
    pub(crate) fn new(of: &New<'_>, tasks: IdVec<TaskId, Task>) -> RunQueues {
        let (setup, rules) = (of.setup, of.rules);
        let topology = setup.topology;
        let n = topology.nr_cpus();
        let tick_ns = 1_000_000_000 / u64::from(setup.hz);
        let weights = tasks.iter().map(|t| t.state.load);
        RunQueues {
            now: 0,
            rules,
            tick_ns,
            cpus: (0..n).map(|cpu| RunQueue::new(topology, cpu)).collect(),
            fair: FairState::new(rules, tick_ns, weights, setup.groups, of.groups, n),
            rt: rt::domain(setup.tasks, &setup.policy, topology),
            ext: ExtState::default(),
            tasks,
            affinities: setup.masks.iter().cloned().collect(),
            unequal: (0..n).any(|cpu| topology.capacity(cpu) != topology.capacity(0)),
            effects: Vec::new(),
            has_lines: of.has_lines,
            topology: topology.clone(),
        }
    }
}

/// The run queue of a CPU. Its fair part is in [`FairState`], beside the queues of task groups.
#[derive(Debug)]
pub(crate) struct RunQueue {
    /// The running task.
    pub(in crate::class) current: Option<TaskId>,
    /// True if the running task should give way as soon as possible.
    pub(in crate::class) need_resched: bool,
    /// The capacity, 1024 for the machine's largest CPU.
    pub(in crate::class) capacity: u32,
    /// The clock of the PELT averages.
    pub(in crate::class) pelt: Clock,
    /// The idle and busy times, and the average length of idle periods.
    pub(in crate::class) idleness: Idleness,
    /// The real-time class's part.
    pub(in crate::class) rt: RtQueue,
    /// The extensible class's part.
    pub(in crate::class) ext: ExtQueue,
}

impl RunQueue {
    /// Returns the queue of a CPU on which nothing has run yet.
    fn new(topology: &Topology, cpu: usize) -> RunQueue {
        RunQueue {
            current: None,
            need_resched: false,
            capacity: topology.capacity(cpu),
            pelt: Clock::new(topology.capacity(cpu)),
            idleness: Idleness::new(),
            rt: RtQueue::default(),
            ext: ExtQueue::default(),
        }
    }
}

/// The side effects of operations.
impl RunQueues {
    /// Returns whether there are side effects that the core has not taken yet.
    #[inline]
    pub(crate) fn any_effect(&self) -> bool {
        !self.effects.is_empty()
    }

    /// Takes all of them, in order. The caller gives the memory back with [`RunQueues::reuse`].
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// See [`RunQueues::take_effects`].
    pub(crate) fn reuse(&mut self, mut effects: Vec<Effect>) {
        effects.clear();
        self.effects = effects;
    }

    /// Notes an access to a contended line.
    #[inline]
    pub(in crate::class) fn line(&mut self, symbol: Symbol, field: Field, access: Access) {
        if self.has_lines {
            self.effects.push(Effect::Line(symbol, field, access));
        }
    }
}

/// The time.
impl RunQueues {
    /// Returns the time of the run, in nanoseconds.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Lets time pass until `now_ns`.
    #[inline]
    pub(crate) fn pass_to(&mut self, now_ns: u64) {
        self.now = now_ns;
    }

    /// Returns the length of a tick, in nanoseconds.
    #[inline]
    pub(crate) fn tick_ns(&self) -> u64 {
        self.tick_ns
    }
}

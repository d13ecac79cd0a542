// SPDX-License-Identifier: GPL-2.0-or-later
//! The run queues: what runs and waits on each CPU, the classes' state, and the clock.

use std::sync::Arc;

use perch_policy::{CpuMask, GroupId, Topology};

use super::effect::Effect;
use super::fair::FairState;
use super::idleness::Idleness;
use super::pelt::Clock;
use super::rt::{self, RtDomain, RtQueue};
use crate::core::Task;
use crate::era::EraRules;
use crate::hardware::{Access, Field, Symbol};
use crate::id::{IdVec, MaskId, TaskId};
use crate::setup::Setup;

/// The run queues of all CPUs, and the tasks in them.
pub(crate) struct RunQueues {
    pub(crate) now: u64,
    pub(crate) rules: EraRules,
    pub(crate) tick_ns: u64,
    pub(crate) cpus: Vec<RunQueue>,
    pub(crate) tasks: IdVec<TaskId, Task>,
    /// The tasks' affinities, each stored once.
    pub(crate) affinities: IdVec<MaskId, Arc<CpuMask>>,
    /// True if the CPUs differ in capacity.
    pub(crate) unequal: bool,
    /// The fair class's state that belongs to no single CPU.
    pub(crate) fair: FairState,
    /// The real-time class's part of the root domain, if any task is of that class.
    pub(crate) rt: Option<Box<RtDomain>>,
    /// What operations did beyond the queues, until the core takes it.
    pub(in crate::class) effects: Vec<Effect>,
    /// True if accesses to contended lines cost anything on this machine.
    pub(in crate::class) has_lines: bool,
    pub(in crate::class) topology: Arc<Topology>,
}

/// What run queues are made of, beside the tasks.
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
    pub(crate) current: Option<TaskId>,
    /// True if the running task should give way as soon as possible.
    pub(crate) need_resched: bool,
    /// The capacity, 1024 for the machine's largest CPU.
    pub(in crate::class) capacity: u32,
    /// The clock of the PELT averages.
    pub(crate) pelt: Clock,
    /// The idle and busy times, and the average length of idle periods.
    pub(crate) idleness: Idleness,
    /// The real-time class's part.
    pub(crate) rt: RtQueue,
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
        }
    }
}

/// What operations do beyond the queues.
impl RunQueues {
    /// Returns whether operations did anything beyond the queues since the core last took it.
    #[inline]
    pub(crate) fn any_effect(&self) -> bool {
        !self.effects.is_empty()
    }

    /// Takes all of it, in order. The caller gives the memory back with [`RunQueues::reuse`].
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

/// The running tasks.
impl RunQueues {
    /// Returns the task that runs on `cpu`.
    #[inline]
    pub(crate) fn current(&self, cpu: usize) -> Option<TaskId> {
        self.cpus[cpu].current
    }

    /// Asks `cpu` to reschedule. Returns whether it was asked before.
    pub(crate) fn ask_resched(&mut self, cpu: usize) -> bool {
        std::mem::replace(&mut self.cpus[cpu].need_resched, true)
    }
}

/// The tasks' affinities.
impl RunQueues {
    /// Returns the CPUs that `task` may use.
    #[inline]
    pub(crate) fn allowed(&self, task: TaskId) -> &CpuMask {
        &self.affinities[self.tasks[task].affinity]
    }

    /// Returns whether `task` may use `cpu`.
    #[inline]
    pub(crate) fn may_run_on(&self, task: TaskId, cpu: usize) -> bool {
        self.allowed(task).contains(cpu)
    }
}

// SPDX-License-Identifier: GPL-2.0-or-later
//! The run queues: what runs and waits on each CPU, the classes' state, and the clock.

use std::sync::Arc;

use perch_policy::{CpuMask, GroupId, TaskState, Topology};

use super::effect::Effect;
use super::ext::{ExtQueue, ExtState};
use super::fair::FairState;
use super::idleness::Idleness;
use super::pelt::Clock;
use super::rt::{self, RtDomain, RtQueue};
use super::task::Task;
use crate::core::Life;
use crate::era::EraRules;
use crate::hardware::{Access, Field, Symbol};
use crate::id::{IdVec, MaskId, TaskGroupId, TaskId};
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

/// The tasks.
impl RunQueues {
    /// Returns a task.
    #[inline]
    pub(crate) fn task(&self, task: TaskId) -> &Task {
        &self.tasks[task]
    }

    /// See [`RunQueues::task`].
    #[inline]
    pub(crate) fn task_mut(&mut self, task: TaskId) -> &mut Task {
        &mut self.tasks[task]
    }

    /// Returns what the policy is asked about: the state of `wakee`, that of another task that wakes
    /// it, and the CPUs that the wakee may use.
    #[inline]
    pub(crate) fn asked(
        &mut self,
        wakee: TaskId,
        waker: Option<TaskId>,
    ) -> (&mut TaskState, Option<&mut TaskState>, &CpuMask) {
        let allowed = &self.affinities[self.tasks[wakee].affinity];
        match waker {
            Some(waker) => {
                let (waker, wakee) = self.tasks.two_mut(waker, wakee);
                (&mut wakee.state, Some(&mut waker.state), allowed)
            }
            None => (&mut self.tasks[wakee].state, None, allowed),
        }
    }

    /// Returns all tasks with their numbers.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = (TaskId, &Task)> {
        self.tasks.named()
    }

    /// Returns the number of tasks.
    pub(crate) fn nr_tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Notes that `task`, which was woken, is on its way to its CPU.
    pub(crate) fn travels(&mut self, task: TaskId) {
        self.tasks[task].life = Life::Waking;
    }

    /// Makes `cpu` the CPU of `task`, which is on no queue.
    pub(crate) fn assign(&mut self, task: TaskId, cpu: usize) {
        self.tasks[task].cpu = cpu;
    }

    /// Puts `task`, which is on no queue, into a task group.
    pub(crate) fn join(&mut self, task: TaskId, group: Option<TaskGroupId>) {
        let t = &mut self.tasks[task];
        t.group = group;
        t.state.set_group(self.fair.joins(group));
    }

    /// Sets the affinity of `task`.
    pub(crate) fn bind(&mut self, task: TaskId, mask: MaskId) {
        self.tasks[task].affinity = mask;
    }
}

/// The running tasks and the idle CPUs.
impl RunQueues {
    /// Returns whether the CPUs differ in capacity.
    #[inline]
    pub(crate) fn is_unequal(&self) -> bool {
        self.unequal
    }

    /// Returns the idle and busy times of `cpu`.
    #[inline]
    pub(crate) fn idleness(&self, cpu: usize) -> &Idleness {
        &self.cpus[cpu].idleness
    }

    /// See [`RunQueues::idleness`].
    #[inline]
    pub(crate) fn idleness_mut(&mut self, cpu: usize) -> &mut Idleness {
        &mut self.cpus[cpu].idleness
    }

    /// Notes that `cpu` becomes idle; the clock of its averages stops.
    pub(crate) fn begin_idle(&mut self, cpu: usize, since_ns: u64) {
        let full = self.is_full(cpu);
        let c = &mut self.cpus[cpu];
        c.pelt.stop(self.now, full);
        c.idleness.begin(since_ns);
    }

    /// Notes that `cpu` becomes busy.
    pub(crate) fn end_idle(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        c.idleness.end(self.now);
        c.pelt.start(self.now);
    }

    /// Returns the time for which `cpu` was busy since this was last taken, in nanoseconds.
    pub(crate) fn busy_ns(&self, cpu: usize) -> u64 {
        let c = &self.cpus[cpu];
        c.idleness.busy_ns(self.now, c.current.is_some())
    }

    /// Takes that time.
    pub(crate) fn take_busy(&mut self, cpu: usize) -> u64 {
        let c = &mut self.cpus[cpu];
        c.idleness.take_busy(self.now, c.current.is_some())
    }

    /// Returns whether the running task of `cpu` should give way as soon as possible.
    #[inline]
    pub(crate) fn need_resched(&self, cpu: usize) -> bool {
        self.cpus[cpu].need_resched
    }

    /// Takes the request to reschedule `cpu` back.
    #[inline]
    pub(crate) fn clear_resched(&mut self, cpu: usize) {
        self.cpus[cpu].need_resched = false;
    }

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

    /// Returns the CPUs of an affinity.
    #[inline]
    pub(crate) fn mask(&self, mask: MaskId) -> &CpuMask {
        &self.affinities[mask]
    }

    /// Returns whether `task` may use `cpu`.
    #[inline]
    pub(crate) fn may_run_on(&self, task: TaskId, cpu: usize) -> bool {
        self.allowed(task).contains(cpu)
    }
}

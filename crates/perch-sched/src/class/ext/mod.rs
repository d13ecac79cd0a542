// SPDX-License-Identifier: GPL-2.0-or-later
//! The extensible class (sched_ext): another scheduler decides about the tasks that would be in the
//! fair class.
//!
//! This room keeps what the rest of the kernel must know of such tasks: on whose queue each of them
//! is, and which of them runs. Everything else is the business of an [`ExtClass`], which comes from
//! outside (perch-scx has one); it is asked at the moments at which the kernel calls a class.

mod kernel;
mod turn;

pub use kernel::ExtKernel;

use crate::class::RunQueues;
use crate::core::Life;
use crate::id::TaskId;
use crate::setup::Setup;
use crate::{Violation, hold};

/// A waking task's way to its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtWake {
    /// A sleeping task is woken, by a task that is about to sleep itself if `sync`.
    Woken {
        /// See above.
        sync: bool,
    },
    /// A task is new.
    Forked,
}

/// A scheduler of tasks, which the kernel asks. In all functions `kernel` is the kernel as it is at
/// that moment; [`ExtKernel::here`] is the CPU that executes the function.
pub trait ExtClass {
    /// The machine is up, all its CPUs are idle, and no task has been forked yet. `setup` has the tasks.
    ///
    /// # Errors
    /// The scheduler refuses to be loaded; the message says why.
    fn load(&mut self, kernel: &mut ExtKernel<'_>, setup: &Setup<'_>) -> Result<(), String>;

    /// A task is forked; its CPU is not chosen yet.
    fn fork(&mut self, kernel: &mut ExtKernel<'_>, task: TaskId);

    /// A task has ended and left its CPU.
    fn exit(&mut self, kernel: &mut ExtKernel<'_>, task: TaskId);

    /// Chooses the CPU of a task that may use more than one.
    fn select(
        &mut self,
        kernel: &mut ExtKernel<'_>,
        task: TaskId,
        prev: usize,
        wake: ExtWake,
    ) -> usize;

    /// A task comes to the queue of `cpu`, because it was woken or forked, or moved while it ran.
    fn enqueue(&mut self, kernel: &mut ExtKernel<'_>, cpu: usize, task: TaskId, woken: bool);

    /// The running task of `cpu` leaves the queue: to sleep or end, or else to move.
    fn dequeue(&mut self, kernel: &mut ExtKernel<'_>, cpu: usize, task: TaskId, sleeps: bool);

    /// Chooses the task that runs next on `cpu`. `prev` is the one that ran last, which may have left
    /// the queue meanwhile; if it is still the CPU's current one, it may go on.
    fn pick(
        &mut self,
        kernel: &mut ExtKernel<'_>,
        cpu: usize,
        prev: Option<TaskId>,
    ) -> Option<TaskId>;

    /// Returns the nanoseconds that pass before `cpu`, which has nothing of its own to run, can have a
    /// task that waits on another CPU's queue; 0 if none does. The CPU picks afterwards, and may
    /// then find that others were faster.
    fn search_ns(&mut self, kernel: &mut ExtKernel<'_>, cpu: usize) -> u64;

    /// The running task of `cpu` makes way though it is runnable: for `next`, the CPU's idle task
    /// (`None`), or a task of a higher class, if `outranked`.
    fn put(
        &mut self,
        kernel: &mut ExtKernel<'_>,
        cpu: usize,
        task: TaskId,
        next: Option<TaskId>,
        outranked: bool,
    );

    /// The task that was picked runs from now on.
    fn set_next(&mut self, kernel: &mut ExtKernel<'_>, cpu: usize, task: TaskId);

    /// A tick finds the task running.
    fn tick(&mut self, kernel: &mut ExtKernel<'_>, cpu: usize, task: TaskId);

    /// The running task yields. The CPU picks its next task afterwards.
    fn yields(&mut self, kernel: &mut ExtKernel<'_>, cpu: usize, task: TaskId);

    /// The running task has run for `ran_ns` since it was last charged.
    fn charge(&mut self, kernel: &mut ExtKernel<'_>, cpu: usize, task: TaskId, ran_ns: u64);

    /// The CPU runs its idle task from now on, in an idle state that takes `exit_ns` nanoseconds to
    /// leave, or (`None`) no longer.
    fn idle(&mut self, kernel: &mut ExtKernel<'_>, cpu: usize, exit_ns: Option<u32>);

    /// The task's affinity has changed.
    fn bind(&mut self, kernel: &mut ExtKernel<'_>, task: TaskId);

    /// A timer has expired that was started with this key.
    fn timer(&mut self, kernel: &mut ExtKernel<'_>, key: u64);

    /// Returns whether a task may be left on its CPU's list of wake-ups for that CPU to enqueue;
    /// otherwise the waker enqueues it, wherever that is.
    fn queues_wakeups(&self) -> bool;

    /// Returns the tasks that wait, once for each place in which the scheduler has them; for checks.
    fn waiting(&self) -> Vec<TaskId>;

    /// The reason for which the scheduler gave up or was thrown out, once there is one.
    fn ended(&self) -> Option<&str>;
}

/// The extensible class's part of a CPU's queue.
#[derive(Debug, Default)]
pub(crate) struct ExtQueue {
    /// The runnable tasks of the class on this queue, the running one included.
    nr: u32,
    /// True if the running task is one of them.
    runs: bool,
    /// The task that ran last, until the next one is picked, of whichever class.
    pub(in crate::class) last: Option<TaskId>,
    /// The outcome of a pick for which the running task has not made way yet.
    picked: Option<Option<TaskId>>,
}

/// The extensible class's state that belongs to no single CPU.
#[derive(Default)]
pub(crate) struct ExtState {
    /// Taken out while it is asked.
    class: Option<Box<dyn ExtClass>>,
    loaded: bool,
    /// See [`ExtClass::queues_wakeups`].
    enqueues_itself: bool,
    /// The CPU that executes kernel code at this moment.
    here: usize,
}

impl RunQueues {
    /// Makes `class` the scheduler of all tasks that would be in the fair class.
    pub(crate) fn load_ext(
        &mut self,
        class: Box<dyn ExtClass>,
        setup: &Setup<'_>,
    ) -> Result<(), String> {
        self.ext.loaded = true;
        self.ext.class = Some(class);
        self.ask_ext(0, |ext, kernel| ext.load(kernel, setup))?;
        self.ext.enqueues_itself = self.ask_ext(0, |ext, _| !ext.queues_wakeups());
        Ok(())
    }

    /// Returns whether there is such a scheduler.
    #[inline]
    pub(in crate::class) fn has_ext(&self) -> bool {
        self.ext.loaded
    }

    /// Returns whether the kernel balances the tasks that are not real-time ones. A scheduler from
    /// outside looks for tasks itself.
    #[inline]
    pub(crate) fn balances(&self) -> bool {
        !self.has_ext()
    }

    /// Returns whether `cpu`, which runs no task, is to look for one: a scheduler from outside asked
    /// it to reschedule.
    #[inline]
    pub(crate) fn is_kicked(&self, cpu: usize) -> bool {
        self.has_ext() && self.current(cpu).is_none() && self.need_resched(cpu)
    }

    /// Makes `cpu` the one that executes what the scheduler is asked for on another CPU's behalf.
    #[inline]
    pub(crate) fn act_on(&mut self, cpu: usize) {
        self.ext.here = cpu;
    }

    /// See [`ExtClass::ended`].
    pub(crate) fn ext_ended(&self) -> Option<&str> {
        self.ext.class.as_ref()?.ended()
    }

    /// Returns whether `task` may be left on its CPU's list of wake-ups.
    #[inline]
    pub(crate) fn may_queue_wakeup(&self, task: TaskId) -> bool {
        !self.ext.enqueues_itself || self.is_rt(task)
    }

    /// See [`ExtClass::waiting`].
    pub(crate) fn ext_waiting(&self) -> Vec<TaskId> {
        self.ext.class.as_ref().map_or_else(Vec::new, |ext| ext.waiting())
    }

    /// Checks that the numbers of tasks on the CPUs' queues are right.
    pub(crate) fn check_ext(&self) -> Result<(), Violation> {
        if !self.has_ext() {
            return Ok(());
        }
        let mut nrs = vec![0; self.cpus.len()];
        for (id, task) in self.tasks.named() {
            if !self.is_rt(id) && matches!(task.life, Life::Queued | Life::Running) {
                nrs[task.cpu] += 1;
            }
        }
        for (cpu, nr) in nrs.into_iter().enumerate() {
            let queue = &self.cpus[cpu].ext;
            hold!(queue.nr == nr, "cpu {cpu}: {} tasks, not {nr}", queue.nr);
            hold!(
                queue.picked.is_none(),
                "cpu {cpu}: {:?} was picked and does not run",
                queue.picked
            );
        }
        Ok(())
    }

    /// Returns the number of runnable tasks of the class on the queue of `cpu`.
    #[inline]
    pub(crate) fn nr_ext(&self, cpu: usize) -> u32 {
        self.cpus[cpu].ext.nr
    }

    /// Returns whether `cpu` runs a task of the class.
    #[inline]
    pub(crate) fn runs_ext(&self, cpu: usize) -> bool {
        self.cpus[cpu].ext.runs
    }

    /// Asks the scheduler; `here` executes what it does.
    fn ask_ext<T>(
        &mut self,
        here: usize,
        ask: impl FnOnce(&mut dyn ExtClass, &mut ExtKernel<'_>) -> T,
    ) -> T {
        // The scheduler looks at the queues while it answers.
        let mut ext = self.ext.class.take().expect("a scheduler is loaded");
        let answer = ask(ext.as_mut(), &mut ExtKernel::new(self, here));
        self.ext.class = Some(ext);
        answer
    }
}

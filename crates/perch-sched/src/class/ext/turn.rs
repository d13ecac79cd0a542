// SPDX-License-Identifier: GPL-2.0-or-later
//! The operations of a class, for tasks of the extensible one.
//!
//! The kernel picks the next task while the running one is still current, and puts the latter back
//! only if the two differ. The core asks a class first whether the running task goes on
//! ([`RunQueues::goes_on`]), which is where the pick happens; its outcome waits in the queue until
//! the core picks.

use perch_policy::Wake;

use super::ExtWake;
use crate::class::RunQueues;
use crate::class::table::{Arrival, Choice, Yield};
use crate::core::Life;
use crate::id::TaskId;

impl RunQueues {
    /// Chooses the CPU of a task that `here` wakes or forks.
    #[inline(never)]
    pub(in crate::class) fn choose_ext(
        &mut self,
        task: TaskId,
        wake: &Wake,
        here: usize,
    ) -> Choice {
        if wake.exec {
            return Choice::Stays;
        }
        if wake.fork {
            self.ask_ext(here, |ext, kernel| ext.fork(kernel, task));
        }
        let allowed = self.allowed(task);
        // The kernel does not ask the class about a task that may use one CPU.
        if allowed.weight() == 1 {
            return Choice::Outside(allowed.iter().next().expect("it has one"));
        }
        let how = if wake.fork { ExtWake::Forked } else { ExtWake::Woken { sync: wake.sync } };
        let cpu = self.ask_ext(here, |ext, kernel| ext.select(kernel, task, wake.prev_cpu, how));
        let allowed = self.allowed(task);
        let allows = |cpu: usize| allowed.contains(cpu);
        let fallback = || allowed.iter().next().expect("a task may use some CPU");
        let cpu = [cpu, wake.prev_cpu].into_iter().find(|&cpu| allows(cpu));
        Choice::Outside(cpu.unwrap_or_else(fallback))
    }

    #[inline(never)]
    pub(in crate::class) fn enqueue_ext(&mut self, cpu: usize, task: TaskId, moved: bool) {
        let t = &mut self.tasks[task];
        let queued = matches!(t.life, Life::Queued | Life::Running);
        assert!(!queued, "task {task} is enqueued twice");
        t.cpu = cpu;
        t.life = Life::Queued;
        self.cpus[cpu].ext.nr += 1;
        self.ask_ext(self.ext.here, |ext, kernel| {
            ext.enqueue(kernel, cpu, task, !moved);
        });
    }

    /// Takes the running task off `cpu` and its queue.
    #[inline(never)]
    pub(in crate::class) fn leave_ext(&mut self, cpu: usize, task: TaskId, life: Life) {
        let sleeps = matches!(life, Life::Asleep | Life::Dead);
        self.account_ext(cpu, task);
        self.ask_ext(cpu, |ext, kernel| ext.dequeue(kernel, cpu, task, sleeps));
        let c = &mut self.cpus[cpu];
        c.ext.nr -= 1;
        c.ext.runs = false;
        c.ext.last = Some(task);
        c.current = None;
        self.tasks[task].life = life;
        if life == Life::Dead {
            self.cpus[cpu].ext.last = None;
            self.ask_ext(cpu, |ext, kernel| ext.exit(kernel, task));
        }
    }

    /// Takes the running task off `cpu` and its queue, to bring it to another one.
    pub(crate) fn detach_ext(&mut self, cpu: usize, task: TaskId) {
        self.leave_ext(cpu, task, Life::Waking);
        // The kernel's stopper moves the task, and is what the CPU ran last.
        self.cpus[cpu].ext.last = None;
    }

    #[inline(never)]
    pub(in crate::class) fn pick_ext(&mut self, cpu: usize) -> Option<TaskId> {
        let queue = &mut self.cpus[cpu].ext;
        let last = queue.last.take();
        if let Some(picked) = queue.picked.take() {
            return picked;
        }
        self.ask_ext(cpu, |ext, kernel| ext.pick(kernel, cpu, last))
    }

    /// See [`super::ExtClass::search_ns`]; 0 if the next task is picked already, or a higher class has
    /// one.
    pub(crate) fn ext_search_ns(&mut self, cpu: usize) -> u64 {
        if self.cpus[cpu].ext.picked.is_some() || self.pick_rt(cpu).is_some() {
            return 0;
        }
        self.ask_ext(cpu, |ext, kernel| ext.search_ns(kernel, cpu))
    }

    /// Notes that `cpu` searches, and picks again afterwards. The task that ran last may be woken
    /// meanwhile.
    pub(crate) fn begin_search(&mut self, cpu: usize) {
        self.cpus[cpu].ext.last = None;
        self.cpus[cpu].need_resched = true;
    }

    #[inline(never)]
    pub(in crate::class) fn set_next_ext(&mut self, cpu: usize, task: TaskId) {
        self.tasks[task].life = Life::Running;
        self.run_time_mut(task).start_ns = self.now;
        let c = &mut self.cpus[cpu];
        assert!(c.current.is_none(), "cpu {cpu} runs two tasks");
        c.current = Some(task);
        c.need_resched = false;
        c.ext.runs = true;
        self.ask_ext(cpu, |ext, kernel| ext.set_next(kernel, cpu, task));
    }

    #[inline(never)]
    pub(in crate::class) fn put_ext(&mut self, cpu: usize, task: TaskId) {
        let picked = self.cpus[cpu].ext.picked;
        self.account_ext(cpu, task);
        self.ask_ext(cpu, |ext, kernel| {
            ext.put(kernel, cpu, task, picked.flatten(), picked.is_none());
        });
        let c = &mut self.cpus[cpu];
        c.current = None;
        c.ext.runs = false;
        self.tasks[task].life = Life::Queued;
    }

    /// Picks the next task while the running one is current. Returns whether this is the running one
    /// again. If so, the CPU does not switch.
    #[inline(never)]
    pub(in crate::class) fn goes_on_ext(&mut self, cpu: usize, task: TaskId) -> bool {
        if self.pick_rt(cpu).is_some() {
            return false;
        }
        self.account_ext(cpu, task);
        let next = self.ask_ext(cpu, |ext, kernel| ext.pick(kernel, cpu, Some(task)));
        if next == Some(task) {
            self.cpus[cpu].need_resched = false;
            return true;
        }
        self.cpus[cpu].ext.picked = Some(next);
        false
    }

    #[inline(never)]
    pub(in crate::class) fn yield_ext(&mut self, cpu: usize, task: TaskId) -> Yield {
        self.account_ext(cpu, task);
        self.ask_ext(cpu, |ext, kernel| ext.yields(kernel, cpu, task));
        if self.goes_on_ext(cpu, task) { Yield::Keeps } else { Yield::GivesWay }
    }

    #[inline(never)]
    pub(in crate::class) fn tick_ext(&mut self, cpu: usize, task: TaskId) {
        self.account_ext(cpu, task);
        self.ask_ext(cpu, |ext, kernel| ext.tick(kernel, cpu, task));
    }

    /// A task that was enqueued preempts the idle task only; what else it does is the scheduler's
    /// decision.
    pub(in crate::class) fn check_preempt_ext(&mut self, cpu: usize) -> Arrival {
        if self.cpus[cpu].current.is_none() {
            self.cpus[cpu].need_resched = true;
        }
        Arrival::default()
    }

    #[inline(never)]
    pub(in crate::class) fn account_ext(&mut self, cpu: usize, task: TaskId) {
        let now = self.now;
        let ran_ns = self.run_time_mut(task).account(now);
        if ran_ns > 0 {
            self.ask_ext(cpu, |ext, kernel| ext.charge(kernel, cpu, task, ran_ns));
        }
    }

    /// Tells the scheduler that `cpu` idles from now on, `exit_ns` nanoseconds away from running, or no
    /// longer.
    #[inline]
    pub(crate) fn tell_idle(&mut self, cpu: usize, exit_ns: Option<u32>) {
        if self.ext.loaded {
            self.ask_ext(cpu, |ext, kernel| ext.idle(kernel, cpu, exit_ns));
        }
    }

    /// Tells the scheduler that the affinity of `task` has changed.
    pub(crate) fn tell_bound(&mut self, task: TaskId) {
        if self.ext.loaded && !self.is_rt(task) {
            let here = self.tasks[task].cpu;
            self.ask_ext(here, |ext, kernel| ext.bind(kernel, task));
        }
    }

    /// Tells the scheduler that a timer has expired on `cpu`.
    pub(crate) fn expire_ext(&mut self, cpu: usize, key: u32) {
        self.ask_ext(cpu, |ext, kernel| ext.timer(kernel, key.into()));
    }
}

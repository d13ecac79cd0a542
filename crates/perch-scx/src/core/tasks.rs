// SPDX-License-Identifier: GPL-2.0-or-later
//! The class's functions about one task: its birth and its end, its wake-ups (`select_task_rq_scx`,
//! `enqueue_task_scx`, `dequeue_task_scx`).

use perch_engine::{IdVec, TaskId};

use super::Core;
use crate::abi::flag;

#[derive(Default)]
struct Task {
    queued: bool,
    /// The task has never been queued.
    newborn: bool,
    /// The class has chosen the CPU of the wake-up under way.
    selected: bool,
}

pub(super) struct Tasks(IdVec<TaskId, Task>);

impl Tasks {
    pub fn new(nr_tasks: usize) -> Tasks {
        Tasks((0..nr_tasks).map(|_| Task::default()).collect())
    }

    pub fn is_queued(&self, task: TaskId) -> bool {
        self.0[task].queued
    }

    /// Queues the task. Returns what `ops.enqueue()` is told.
    fn enqueue(&mut self, task: TaskId, woken: bool) -> u64 {
        let task = &mut self.0[task];
        task.queued = true;
        let newborn = std::mem::take(&mut task.newborn);
        if !woken || newborn {
            return 0;
        }
        if std::mem::take(&mut task.selected) {
            flag::ENQ_WAKEUP | flag::ENQ_CPU_SELECTED
        } else {
            flag::ENQ_WAKEUP
        }
    }
}

/// The kernel's jiffies, at 250 a second.
const NS_PER_JIFFY: u64 = 4_000_000;

impl Core {
    pub fn fork(&self, task: TaskId, weight: u32, cgroup: usize) {
        self.show_affinity(task);
        self.memory.put_slice(task, flag::SLICE_DFL);
        self.tasks.borrow_mut().0[task].newborn = true;
        let at = self.memory.task(task);
        if let Some(init_task) = self.callbacks.init_task {
            self.charge_call(|counted| counted.init_task);
            let error = init_task(at, 1, self.memory.cgroups.at(cgroup));
            if error != 0 {
                self.end(format!("ops.init_task() failed with {error} for task {task}"));
            }
        }
        self.memory.put_weight(task, weight);
        if let Some(enable) = self.callbacks.enable {
            self.charge_call(|counted| counted.enable);
            enable(at);
        }
        if let Some(set_weight) = self.callbacks.set_weight {
            self.charge_call(|counted| counted.rare);
            set_weight(at, weight);
        }
    }

    pub fn exit(&self, task: TaskId) {
        let at = self.memory.task(task);
        if let Some(disable) = self.callbacks.disable {
            self.charge_call(|counted| counted.rare);
            disable(at);
        }
        if let Some(exit_task) = self.callbacks.exit_task {
            self.charge_call(|counted| counted.exit_task);
            exit_task(at);
        }
        self.maps.borrow_mut().forget(at.address());
    }

    pub fn bind(&self, task: TaskId) {
        self.show_affinity(task);
        if let Some(set_cpumask) = self.callbacks.set_cpumask {
            self.charge_call(|counted| counted.rare);
            set_cpumask(self.memory.task(task), self.memory.allowed(task));
        }
    }

    fn show_affinity(&self, task: TaskId) {
        self.kernel.ask(|kernel| {
            let (words, weight) = (kernel.allowed(task).words(), kernel.allowed(task).weight());
            self.memory.put_allowed(task, words.as_ptr(), weight);
        });
    }

    pub fn select(&self, task: TaskId, prev: usize, wake_flags: u64) -> usize {
        let Some(select_cpu) = self.callbacks.select_cpu else {
            let Some(cpu) = self.select_idle(task, prev, wake_flags, None, 0) else {
                return prev;
            };
            self.inserting(task, || self.insert(task, flag::DSQ_LOCAL, flag::SLICE_DFL, 0, None));
            return cpu;
        };
        // A task with only one CPU lets nobody choose.
        let several = self.kernel.ask(|k| k.allowed(task).weight() > 1);
        self.tasks.borrow_mut().0[task].selected = several;
        let call = || select_cpu(self.memory.task(task), prev as i32, wake_flags);
        let cpu = self.inserting(task, call);
        let direct = self.dispatches.borrow().is_direct(task);
        let here = self.here();
        self.charge_call(|counted| match (direct, cpu) {
            (true, cpu) if cpu == here as i32 && !self.idle.borrow().idles(here) => {
                counted.select_here
            }
            (true, cpu) if cpu == prev as i32 => counted.select_prev,
            _ => counted.select_cpu,
        });
        match usize::try_from(cpu) {
            Ok(cpu) if cpu < self.nr_cpus => cpu,
            _ => {
                self.end(format!("ops.select_cpu() returned the invalid CPU {cpu}"));
                prev
            }
        }
    }

    /// The default choice of an idle CPU for a task, among these if any are given.
    pub fn select_idle(
        &self,
        task: TaskId,
        prev: usize,
        wake_flags: u64,
        among: Option<&[u64]>,
        flags: u64,
    ) -> Option<usize> {
        self.kernel.ask(|kernel| {
            let here = kernel.here();
            let mut may = kernel.allowed(task).words().to_vec();
            for (may, among) in may.iter_mut().zip(among.into_iter().flatten()) {
                *may &= among;
            }
            let sync = (wake_flags & flag::WAKE_SYNC != 0)
                .then(|| self.queues.borrow().local(here).is_empty());
            let only_cores = flags & flag::PICK_IDLE_CORE != 0;
            let mut idle = self.idle.borrow_mut();
            idle.select(kernel.topology(), here, &may, prev, sync, only_cores)
        })
    }

    pub fn enqueue(&self, cpu: usize, task: TaskId, woken: bool) {
        self.charge_ns(self.costs.borrow().wake_ns());
        self.show(cpu);
        let enq_flags = self.tasks.borrow_mut().enqueue(task, woken);
        self.set_runnable(task);
        self.memory.put_queued(task, true);
        if let Some(runnable) = self.callbacks.runnable.filter(|_| woken) {
            self.charge_call(|counted| counted.queued);
            runnable(self.memory.task(task), enq_flags);
        }
        self.do_enqueue(cpu, task, enq_flags);
        self.settle();
    }

    pub(super) fn set_runnable(&self, task: TaskId) {
        let now_ns = self.now_ns();
        self.watchdog.borrow_mut().runnable(task, now_ns);
        self.memory.put_runnable_at(task, now_ns / NS_PER_JIFFY);
    }

    pub fn dequeue(&self, cpu: usize, task: TaskId, sleeps: bool) {
        let at = self.memory.task(task);
        self.charge_ns(self.costs.borrow().sleep_ns());
        if let Some(stopping) = self.callbacks.stopping {
            self.charge_call(|counted| counted.stopping);
            stopping(at, (!sleeps).into());
        }
        if let Some(quiescent) = self.callbacks.quiescent.filter(|_| sleeps) {
            self.charge_call(|counted| counted.queued);
            quiescent(at, flag::DEQ_SLEEP);
        }
        self.tasks.borrow_mut().0[task].queued = false;
        self.memory.put_queued(task, false);
        self.show(cpu);
    }
}

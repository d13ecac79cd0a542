// SPDX-License-Identifier: GPL-2.0-or-later
//! How a task enters a real-time queue, and leaves it.

use crate::class::RunQueues;
use crate::class::effect::Effect;
use crate::core::Life;
use crate::hardware::{Access, Field, Symbol};
use crate::id::TaskId;

/// The slice of an RR task, in nanoseconds (`RR_TIMESLICE`).
const RR_SLICE_NS: u64 = 100_000_000;

impl RunQueues {
    pub(super) fn rr_ticks(&self) -> u64 {
        (RR_SLICE_NS / self.tick_ns).max(1)
    }

    /// Updates cpupri after a change that may have changed the highest priority on `cpu`.
    fn note_highest(&mut self, cpu: usize) {
        let highest = self.cpus[cpu].rt.runnable.highest();
        if let Some(old) = self.rt_domain_mut().cpupri.set(cpu, highest) {
            for level in [highest, old] {
                self.line(Symbol::CpupriSet, Field::CpupriMask(level), Access::Store);
                self.line(Symbol::CpupriSet, Field::CpupriCount(level), Access::Store);
            }
        }
    }

    /// Adds the real-time tasks to the CPU's number of runnable tasks, which had the fair ones
    /// (`add_nr_running()`). If the number exceeds one by this, the CPU reads the root domain's
    /// flag, and sets it if need be. All real-time tasks of a queue leave the number and come back
    /// whenever one enters or leaves.
    fn add_running(&mut self, cpu: usize, symbol: Symbol) {
        let (below, rt) = (self.nr_below_rt(cpu), self.cpus[cpu].rt.nr());
        if rt > 0 && below < 2 && below + rt >= 2 {
            self.effects.push(Effect::Crowded(symbol));
        }
    }

    /// Enqueues `task` on `cpu`, behind its equals. The CPU that executes this, which
    /// may be another one, accesses the shared lines.
    #[inline(never)]
    pub(in crate::class) fn enqueue_rt(&mut self, cpu: usize, task: TaskId) {
        let slice = self.rr_ticks();
        let t = &mut self.tasks[task];
        let queued = matches!(t.life, Life::Queued | Life::Running);
        assert!(!queued, "task {task} is enqueued twice");
        t.cpu = cpu;
        t.life = Life::Queued;
        if t.rt.ticks == 0 {
            t.rt.ticks = slice;
        }
        let priority = t.rt.priority;
        self.cpus[cpu].rt.enqueue(priority, task);
        self.note_highest(cpu);
        self.add_running(cpu, Symbol::EnqueueTaskRt);
        if self.may_move(task) {
            self.enqueue_pushable(cpu, task);
        }
    }

    /// Dequeues `task`, whether it runs or waits.
    pub(super) fn dequeue_rt(&mut self, cpu: usize, task: TaskId) {
        let current = self.cpus[cpu].current;
        if let Some(current) = current.filter(|_| self.runs_rt(cpu)) {
            self.account_rt(cpu, current);
        }
        let queued = self.cpus[cpu].rt.dequeue(task);
        assert!(queued, "task {task} was not on cpu {cpu}");
        self.note_highest(cpu);
        self.add_running(cpu, Symbol::DequeueTaskRt);
        self.dequeue_pushable(cpu, task);
    }
}
